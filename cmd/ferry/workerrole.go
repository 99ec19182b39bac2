package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/install"
	"ferry.dev/ferry/internal/kinds"
)

// workerRole is the command that prints what to apply on a worker.
func workerRole() *cobra.Command {
	var file string
	var names []string
	cmd := &cobra.Command{
		Use:   "worker-role",
		Short: "Prints the YAML of Ferry's account on a worker, with the rights it needs for the kinds it dispatches",
		Example: "  ferry worker-role --kinds jobset.x-k8s.io/jobset,batch/job | kubectl --context w1 apply -f -\n" +
			"  ferry worker-role --config ferry.yaml            # the kinds that are on in this configuration",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&names, "kinds", nil, "only these kinds, as named in integrations.frameworks; default all")
	cmd.Flags().StringVar(&file, "config", "", "only the kinds that are on in this configuration `file`, of Ferry's own kind or Kueue's")
	cmd.MarkFlagsMutuallyExclusive("kinds", "config")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		enabled, err := enabledKinds(file, names)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), install.Worker(kinds.NewTable(enabled).Rows()))
		return err
	}
	return cmd
}

func enabledKinds(file string, names []string) ([]string, error) {
	known := kinds.Frameworks()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--kinds: %q is not a kind that Ferry dispatches: use %s", name, strings.Join(known, ", "))
		}
	}
	if file == "" && len(names) == 0 {
		return known, nil
	}
	if file == "" {
		return names, nil
	}
	var flags config.Flags
	set := pflag.NewFlagSet("ferry", pflag.ContinueOnError)
	flags.AddTo(set)
	if err := set.Set("config", file); err != nil {
		return nil, err
	}
	c, _, err := flags.Configuration(known)
	if err != nil {
		return nil, err
	}
	return c.Integrations.Frameworks, nil
}
