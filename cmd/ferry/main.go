// Command ferry dispatches Kueue's jobs from a manager cluster to worker clusters.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"ferry.dev/ferry/internal/app"
	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/kinds"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "ferry:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var flags config.Flags
	cmd := &cobra.Command{
		Use:   "ferry",
		Short: "Dispatches Kueue's jobs from a manager cluster to worker clusters",
		Long: "Ferry runs beside stock Kueue on the manager cluster (with --feature-gates=MultiKueue=false there) and takes\n" +
			"over the admission checks of controller kueue.x-k8s.io/multikueue. The configuration is described in docs/configuration.md.",
		Example:       "  ferry --config ferry.yaml                        # in the cluster\n  ferry --config ferry.yaml --kubeconfig ~/.kube/config  # outside of it",
		Version:       thisVersion(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags.AddTo(cmd.Flags())
	cmd.AddCommand(workerRole(), managerRole())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, notes, err := flags.Configuration(kinds.Frameworks())
		if err != nil {
			return err
		}
		log := app.NewLog(flags.LogFormat == config.LogText, flags.Verbosity)
		for _, note := range notes {
			log.Info(note)
		}
		return app.Run(cmd.Context(), app.Options{Config: c, Kubeconfig: flags.Kubeconfig, Version: thisVersion(), Log: log})
	}
	return cmd
}
