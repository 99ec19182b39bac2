package build

import (
	"context"
	"fmt"
	"strings"
)

// KueueDir is the folder of the pinned Kueue module, with its CRDs and webhook manifests.
func (b *Builder) KueueDir(ctx context.Context) (string, error) {
	return b.moduleDir(ctx, tool{folder: "kueue"}.dir(b.Root), kueueModule)
}

// moduleDir finds a module in the module cache and downloads it when it is not there.
func (b *Builder) moduleDir(ctx context.Context, pins, module string) (string, error) {
	for _, download := range []bool{false, true} {
		if download {
			if _, err := run(ctx, pins, "mod", "download", module); err != nil {
				return "", fmt.Errorf("download %s: %w", module, err)
			}
		}
		out, err := run(ctx, pins, "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return "", fmt.Errorf("find the folder of %s: %w", module, err)
		}
		if dir := strings.TrimSpace(string(out)); dir != "" {
			return dir, nil
		}
	}
	return "", fmt.Errorf("module %s has no folder even after its download", module)
}
