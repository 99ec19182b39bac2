package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground/demo"
)

func demoCommand(s *state) *cobra.Command {
	var kinds, operators []string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Start a manager, two workers and Ferry, run sample jobs, and show where they run and why they wait",
		Long: `Demo builds what is missing (the first time this takes some minutes), starts a playground with two workers and
Ferry, or uses the one that is up, and makes the queue "team" in namespace "team": 16 CPUs on the manager, 8 on each
worker. Then it submits sample Jobs, which do not fit all at once, and shows them until all are finished:

  JOB          its name on the manager
  STATE        Queued: waits for quota on the manager. Offered: has it, and waits for a worker's quota.
               Placing, Running: a worker has it. Succeeded, Failed: it is over.
  WORKER       the cluster that runs it
  COMPLETIONS  pods that succeeded, of those wanted
  WHY          why it does not run yet, or why it failed: what the manager's objects say

With --kinds it submits one sample of each kind that is named instead (see examples/kinds), with the operators and
frameworks that these need, and a quota of 64 and 32 CPUs. Kinds that serve are Ready at the end, and go on.

On a terminal the table is redrawn in place; elsewhere each change is a line. A summary ends it.

The clusters stay up; "down" removes them. Ctrl-C during the start stops everything; later it stops the watching only.
When something fails, a playground that was started here is taken down again.`,
		Example: "  playground demo\n  playground demo --kinds jobset,statefulset\n  playground demo --kinds all\n  playground demo --name second\n  playground demo | tee demo.log",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), demo.Options{
				Name: s.name, Kinds: kinds, Operators: operators, Out: cmd.OutOrStdout(), Screen: demo.NewScreen(os.Stdout),
			})
		},
	}
	c.Flags().StringSliceVar(&kinds, "kinds", nil, "submit one sample of each of these kinds instead: "+strings.Join(demo.Kinds(), ", ")+", all")
	c.Flags().StringSliceVar(&operators, "operators", nil, operatorsUsage)
	return c
}
