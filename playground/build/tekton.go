package build

import "context"

// TektonDir is the folder of the pinned Tekton Pipelines module, with its CRDs; Tekton itself is not built.
func (b *Builder) TektonDir(ctx context.Context) (string, error) {
	return b.moduleDir(ctx, tool{folder: "tekton"}.dir(b.Root), "github.com/tektoncd/pipeline")
}
