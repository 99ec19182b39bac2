package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/proxy"
)

func componentCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "component ACTION NAME",
		Short: "Start, stop, kill, pause, resume or restart a component",
		Long: `Component acts on one process; "status" lists their names.

  start    run it, with the same flags, addresses and data as before
  stop     SIGTERM, and SIGKILL when it does not end in time
  kill     SIGKILL
  pause    SIGSTOP: connections stay open and nothing answers
  resume   SIGCONT
  restart  stop and start`,
		Example:   "  playground component kill w1/kube-apiserver\n  playground component start w1/kube-apiserver",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"start", "stop", "kill", "pause", "resume", "restart"},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			return client.Component(cmd.Context(), args[1], args[0])
		},
	}
}

func proxyCommand(s *state) *cobra.Command {
	var delay time.Duration
	c := &cobra.Command{
		Use:   "proxy WORKER MODE",
		Short: "Cut, delay or swallow the connection between the manager and a worker",
		Long: `Proxy changes what happens to connections from Ferry (or MultiKueue) to a worker. Your own access is not affected.

  pass        let everything through
  cut         close what is open and refuse new connections
  delay       hold back each direction by --by
  black-hole  accept and never answer; open connections freeze`,
		Example: "  playground proxy w1 delay --by 300ms\n  playground proxy w1 pass",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			return client.Link(cmd.Context(), args[0], proxy.Mode(args[1]), delay)
		},
	}
	c.Flags().DurationVar(&delay, "by", 0, "how long mode delay holds back each direction")
	return c
}

func queuesCommand(s *state) *cobra.Command {
	var o playground.QueueOptions
	c := &cobra.Command{
		Use:   "queues",
		Short: "Make a queue in all clusters, which sends its jobs from the manager to the workers",
		Example: `  playground queues
  playground queues --namespace team-a --queue train --worker-cpu 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.client()
			if err != nil {
				return err
			}
			if err := client.InstallQueues(cmd.Context(), o); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "queue %s/%s is ready\n", o.Namespace, o.LocalQueue)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.Namespace, "namespace", "default", "namespace of the queue; made if missing")
	f.StringVar(&o.LocalQueue, "queue", "queue", "name of the LocalQueue and the ClusterQueue")
	f.StringVar(&o.Manager.CPU, "manager-cpu", "", "CPU quota on the manager")
	f.StringVar(&o.Manager.Memory, "manager-memory", "", "memory quota on the manager")
	f.StringVar(&o.Worker.CPU, "worker-cpu", "", "CPU quota on each worker")
	f.StringVar(&o.Worker.Memory, "worker-memory", "", "memory quota on each worker")
	return c
}
