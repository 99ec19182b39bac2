package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/build"
)

func kubectlCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--cluster CLUSTER] ARGUMENTS...",
		Short: "Run kubectl against a cluster, the manager unless another is named",
		Long: `Kubectl runs the kubectl of the clusters' version, as their administrator. It is built on first use, in about a minute.
Flags of this command (--cluster, --name) come first; all that follows is kubectl's.`,
		Example: `  playground kubectl get workloads -A
  playground kubectl --cluster w1 -n team get jobs,pods
  playground kubectl --cluster w2 apply -f - < job.yaml`,
		DisableFlagParsing: true, // else kubectl's own flags would be taken for this command's
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := parseKubectl(args, s.name)
			if err != nil {
				return err
			}
			if call.help {
				return cmd.Help()
			}
			s.name = call.name
			cluster, err := s.cluster(cmd.Context(), call.cluster)
			if err != nil {
				return err
			}
			path, err := buildKubectl(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			// Terminal, signals and exit code are kubectl's from here on.
			env := append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
			return fmt.Errorf("run %s: %w", path, syscall.Exec(path, append([]string{"kubectl"}, call.args...), env))
		},
	}
}

func buildKubectl(ctx context.Context, progress io.Writer) (string, error) {
	root, err := build.FindRoot(".")
	if err != nil {
		return "", err
	}
	return (&build.Builder{Root: root, Progress: progress}).Kubectl(ctx)
}

// kubectlCall is a command line, taken apart.
type kubectlCall struct {
	name, cluster string
	args          []string // kubectl's
	help          bool
}

// parseKubectl takes this command's own flags off the front.
func parseKubectl(args []string, name string) (kubectlCall, error) {
	call := kubectlCall{name: name, cluster: playground.ManagerName}
	for len(args) > 0 {
		flag, value, given := strings.Cut(args[0], "=")
		var to *string
		switch flag {
		case "--name":
			to = &call.name
		case "--cluster":
			to = &call.cluster
		case "--help", "-h":
			call.help = true
			return call, nil
		default:
			call.args = args
			return call, nil
		}
		args = args[1:]
		if !given && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if *to = value; value == "" {
			return call, fmt.Errorf("flag needs a value: %s", flag)
		}
	}
	call.help = true
	return call, nil
}
