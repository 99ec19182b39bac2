// Command playground runs a fleet of real clusters on this machine, to try Ferry on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/daemon"
)

func main() {
	daemon.Hook()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		stop()
		os.Exit(1)
	}
}

// state is what all subcommands share.
type state struct{ name string }

func (s *state) client() (*daemon.Client, error) { return daemon.New(s.name) }

func newCommand() *cobra.Command {
	s := &state{}
	c := &cobra.Command{
		Use:   "playground",
		Short: "A manager and worker clusters on this machine, to try Ferry on",
		Long: `Playground runs a fleet of real Kubernetes clusters on loopback: a manager and workers, each with its own etcd,
API server, controller manager and stock Kueue. Workers have a scheduler and fake nodes, so pods run and end.

A daemon keeps the fleet running after "up" returns. Its state is in .playground/<name> of the repository.`,
		Example: `  # a manager, workers w1 to w3, and Ferry
  playground up --workers 3 --ferry

  # look around
  export KUBECONFIG=$(playground kubeconfig manager)
  playground kubectl get workloads -A # without a kubectl of your own

  # hurt a worker, and heal it
  playground proxy w2 black-hole
  playground component pause w1/kube-apiserver
  playground component resume w1/kube-apiserver
  playground proxy w2 pass

  # remove everything
  playground down`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.PersistentFlags().StringVar(&s.name, "name", playground.DefaultName, "which playground; several can run side by side")
	c.AddCommand(demoCommand(s), upCommand(s), downCommand(s), statusCommand(s), kubeconfigCommand(s), kubectlCommand(s), logsCommand(s),
		componentCommand(s), operatorCommand(s), proxyCommand(s), queuesCommand(s), requestsCommand(s))
	return c
}
