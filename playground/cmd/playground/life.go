package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/daemon"
)

func upCommand(s *state) *cobra.Command {
	var o playground.Options
	var ferryConfig string
	c := &cobra.Command{
		Use:   "up",
		Short: "Build what is missing and start the clusters",
		Long: `Up builds the binaries that are missing (the first time this takes some minutes), starts the clusters and returns
once they are ready for jobs. Ctrl-C stops what has been started. A folder named by KUBEBUILDER_ASSETS may bring
ready-made etcd, kube-apiserver, kube-controller-manager and kube-scheduler.`,
		Example: `  playground up
  playground up --workers 3 --ferry
  playground up --name second --frameworks batch/job,pod --job-runs-for 10s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Name, o.Progress = s.name, cmd.OutOrStdout()
			if ferryConfig != "" {
				data, err := os.ReadFile(ferryConfig)
				if err != nil {
					return fmt.Errorf("read --ferry-config: %w", err)
				}
				o.FerryConfig = string(data)
			}
			client, err := daemon.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return printClusters(cmd.OutOrStdout(), status)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Workers, "workers", playground.DefaultWorkers, "how many worker clusters")
	f.IntVar(&o.NodesPerWorker, "nodes", playground.DefaultNodesPerWorker, "fake nodes of each worker")
	f.DurationVar(&o.JobRunsFor, "job-runs-for", playground.DefaultJobRunsFor, "how long pods of jobs run, unless annotated "+playground.RunForAnnotation)
	f.StringSliceVar(&o.Frameworks, "frameworks", []string{"batch/job"}, `integrations that Kueue has on, besides those of --operators; "all" for all`)
	f.StringSliceVar(&o.Operators, "operators", nil, operatorsUsage)
	f.StringSliceVar(&o.CRDsOf, "crds-of", nil, "operators whose CRDs every cluster gets, to start them later; all for all")
	f.StringSliceVar(&o.CRDs, "crds", nil, "files or folders of CRDs that every cluster gets")
	f.BoolVar(&o.Ferry, "ferry", false, "build and run Ferry on the manager")
	f.StringVar(&ferryConfig, "ferry-config", "", "file with Ferry's config, a Go template (see docs/playground.md)")
	f.BoolVar(&o.StockMultiKueue, "stock-multikueue", false, "leave MultiKueue on in the manager's Kueue, to compare")
	f.BoolVar(&o.Keep, "keep", false, "keep the state folder with its logs when a start fails")
	return c
}

func downCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the clusters and remove their state",
		Long:  "Down stops the clusters and removes their state, also what a crash left behind. Binaries stay.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			if err := client.Down(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "playground %q is down\n", s.name)
			return nil
		},
	}
}

func statusCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show clusters, components and links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
}

func printStatus(out io.Writer, s playground.Status) error {
	if !s.Ready {
		_, err := fmt.Fprintf(out, "the playground is starting (daemon %d)\n", s.PID)
		return err
	}
	fmt.Fprintf(out, "playground %s (daemon %d) in %s\n\n", s.Name, s.PID, s.Dir)
	if err := printClusters(out, s); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nCOMPONENT\tSTATE\tPID")
	for _, c := range s.Components {
		fmt.Fprintf(w, "%s\t%s\t%d\n", c.Name, c.State, c.PID)
	}
	fmt.Fprintln(w, "\nLINK TO\tMODE\tADDRESS")
	for _, l := range s.Links {
		mode := string(l.Mode)
		if l.Delay > 0 {
			mode += " " + l.Delay.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", l.Worker, mode, l.Address)
	}
	return w.Flush()
}

func printClusters(out io.Writer, s playground.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tSERVER\tKUBECONFIG")
	for _, c := range s.Clusters {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Server, c.Kubeconfig)
	}
	return w.Flush()
}
