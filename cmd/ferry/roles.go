package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ferry.dev/ferry/internal/app"
	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/install"
	"ferry.dev/ferry/internal/kinds"
)

// workerRole is the command that prints what to apply on a worker.
func workerRole() *cobra.Command {
	return printer("worker-role", "Prints the YAML of Ferry's account on a worker, with the rights it needs for the kinds it dispatches",
		"  ferry worker-role --kinds jobset.x-k8s.io/jobset,batch/job | kubectl --context w1 apply -f -", install.Worker)
}

// managerRole is the command that prints what follows from the kinds on the manager.
func managerRole() *cobra.Command {
	return printer("manager-role", "Prints the YAML of Ferry's role on the manager and of its webhooks, for the kinds it dispatches",
		"  ferry manager-role --kinds jobset.x-k8s.io/jobset,batch/job | kubectl apply -f -",
		func(rows []*kinds.Kind) string { return install.ManagerRole(rows) + "---\n" + install.Webhooks(rows) })
}

// printer is a command that prints what is made from the rows of some kinds.
func printer(name, short, example string, print func([]*kinds.Kind) string) *cobra.Command {
	var file string
	var names []string
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: example + "\n  ferry " + name + " --config ferry.yaml            # the kinds that are on in this configuration, custom ones too",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&names, "kinds", nil, "only these kinds, as named in integrations.frameworks; default all")
	cmd.Flags().StringVar(&file, "config", "", "only the kinds that are on in this configuration `file`, of Ferry's own kind or Kueue's")
	cmd.MarkFlagsMutuallyExclusive("kinds", "config")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		table, err := tableFor(file, names)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), print(table.Rows()))
		return err
	}
	return cmd
}

// tableFor has the kinds of a configuration file, or else those named, or else all.
func tableFor(file string, names []string) (*kinds.Table, error) {
	known := kinds.Frameworks()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--kinds: %q is not a kind that Ferry dispatches: use %s", name, strings.Join(known, ", "))
		}
	}
	if file == "" && len(names) == 0 {
		return kinds.NewTable(known), nil
	}
	if file == "" {
		return kinds.NewTable(names), nil
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
	return app.Table(c), nil
}
