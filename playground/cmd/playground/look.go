package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/playground/process"
)

const followEvery = 200 * time.Millisecond

func (s *state) status(ctx context.Context) (playground.Status, error) {
	client, err := s.client()
	if err != nil {
		return playground.Status{}, err
	}
	return client.Status(ctx)
}

func (s *state) cluster(ctx context.Context, name string) (playground.ClusterStatus, error) {
	status, err := s.status(ctx)
	if err != nil {
		return playground.ClusterStatus{}, err
	}
	var names []string
	for _, c := range status.Clusters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return playground.ClusterStatus{}, fmt.Errorf("no cluster %q; there are %s", name, strings.Join(names, ", "))
}

func kubeconfigCommand(s *state) *cobra.Command {
	var content bool
	c := &cobra.Command{
		Use:     "kubeconfig CLUSTER",
		Short:   "Print the path of an administrator's kubeconfig",
		Example: "  export KUBECONFIG=$(playground kubeconfig manager)",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := s.cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !content {
				fmt.Fprintln(cmd.OutOrStdout(), cluster.Kubeconfig)
				return nil
			}
			data, err := os.ReadFile(cluster.Kubeconfig)
			if err != nil {
				return fmt.Errorf("read the kubeconfig: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	c.Flags().BoolVar(&content, "content", false, "print the kubeconfig itself")
	return c
}

func logsCommand(s *state) *cobra.Command {
	var follow bool
	var lines int
	c := &cobra.Command{
		Use:     "logs COMPONENT",
		Short:   "Print the log of a component",
		Example: "  playground logs ferry -f\n  playground logs w1/kueue --lines 100",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			status, err := s.status(cmd.Context())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(status.Components, func(c playground.ComponentStatus) bool { return c.Name == args[0] })
			if at < 0 {
				return fmt.Errorf("no component %q; `status` lists them", args[0])
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), status.Components[at].Log, lines, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added")
	c.Flags().IntVar(&lines, "lines", 50, "how many lines from the end")
	return c
}

func printLog(ctx context.Context, out io.Writer, path string, lines int, follow bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if _, err := fmt.Fprintln(out, process.TailFile(path, lines)); err != nil {
		return err
	}
	for follow {
		if _, err := io.Copy(out, f); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
	return nil
}

func requestsCommand(s *state) *cobra.Command {
	var user, namespace, prefix string
	var since time.Duration
	c := &cobra.Command{
		Use:   "requests CLUSTER",
		Short: "Count the API requests of a cluster, by user, verb and resource",
		Example: `  # what Ferry asked worker w1 in the last minute
  playground requests w1 --user ferry --since 1m

  # all requests about one job
  playground requests manager --namespace default --prefix train-1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := s.cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var from time.Time
			if since > 0 {
				from = time.Now().Add(-since)
			}
			counts, err := audit.CountRequests(cluster.AuditLog, from, func(r audit.Request) bool {
				return strings.Contains(r.User, user) && strings.HasPrefix(r.Name, prefix) && (namespace == "" || r.Namespace == namespace)
			})
			if err != nil {
				return err
			}
			return printCounts(cmd.OutOrStdout(), counts)
		},
	}
	c.Flags().StringVar(&user, "user", "", "only users whose name contains this")
	c.Flags().StringVar(&namespace, "namespace", "", "only this namespace")
	c.Flags().StringVar(&prefix, "prefix", "", "only objects whose name begins so")
	c.Flags().DurationVar(&since, "since", 0, "only requests that are not older")
	return c
}

func printCounts(out io.Writer, counts audit.Counts) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "USER\tVERB\tRESOURCE\tCOUNT")
	for _, k := range counts.Keys() {
		resource := k.Resource
		if k.Subresource != "" {
			resource += "/" + k.Subresource
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", k.User, k.Verb, resource, counts[k])
	}
	fmt.Fprintf(w, "\t\ttotal\t%d\n", counts.Total())
	return w.Flush()
}
