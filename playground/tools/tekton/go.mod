module ferry.dev/ferry/playground/tools/tekton

go 1.26.0

require github.com/tektoncd/pipeline v1.6.0
