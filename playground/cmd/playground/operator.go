package main

import (
	"strings"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground/operator"
)

var operatorsUsage = "job operators that run on the workers: " + strings.Join(operator.Names(), ", ") + ", all"

func operatorCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "operator ACTION NAME",
		Short: "Start or stop a job operator",
		Long: `Operator starts a job operator on the workers, after those that it needs, and installs its CRDs in all clusters; or
stops it, which leaves the CRDs. The first start builds it, which takes minutes. Kueue has to have its kinds on: start
the playground with --frameworks all. There are ` + strings.Join(operator.Names(), ", ") + `.`,
		Example:   "  playground operator start kuberay\n  playground operator stop kuberay",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"start", "stop"},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			return client.Operator(cmd.Context(), args[1], args[0])
		},
	}
}
