package playground

import (
	"context"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditPolicy logs every request once, without bodies. Events of watches come twice: begin and end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// startAPI brings up etcd and the API server.
func (c *Cluster) startAPI(ctx context.Context) error {
	clients := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcd)
	peers := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer)
	etcd, err := c.run("etcd",
		"--name=playground", "--data-dir="+c.file("etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=playground="+peers,
		"--unsafe-no-fsync", // nobody needs the data after a crash
		"--quota-backend-bytes=8589934592", "--auto-compaction-retention=5m", "--log-level=warn",
	)
	if err != nil {
		return err
	}
	if err := await(ctx, etcd.Name(), answers(clients+"/readyz"), etcd); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	if c.apiserver, err = c.run("kube-apiserver", c.apiserverFlags(clients)...); err != nil {
		return err
	}
	return await(ctx, c.apiserver.Name(), answers(c.Server()+"/readyz"), c.apiserver, etcd)
}

func (c *Cluster) apiserverFlags(etcd string) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(c.ports.apiserver),
		"--endpoint-reconciler-type=none", // the service network does not exist
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + c.file("pki", "apiserver.crt"), "--tls-private-key-file=" + c.file("pki", "apiserver.key"),
		"--client-ca-file=" + c.file("pki", "ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + c.file("pki", "sa.key"),
		"--service-account-key-file=" + c.file("pki", "sa.key"),
		"--audit-policy-file=" + c.file("audit-policy.yaml"), "--audit-log-path=" + c.AuditLog(),
		"--audit-log-mode=blocking", // a request is in the log once it is answered
		"--allow-privileged=true",
		"--profiling=false",
		"--shutdown-delay-duration=0s",
	}
}

// startController runs the controllers of Kubernetes; a namespace with a default ServiceAccount shows that they work.
func (c *Cluster) startController(ctx context.Context) error {
	kubeconfig := c.file("pki", "kube-controller-manager.kubeconfig")
	kcm, err := c.run("kube-controller-manager",
		"--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.ports.controllerManager),
		"--cert-dir="+c.file("run", "kube-controller-manager"),
		"--leader-elect=false",
		"--root-ca-file="+c.file("pki", "ca.crt"),
		"--service-account-private-key-file="+c.file("pki", "sa.key"),
		"--kube-api-qps=300", "--kube-api-burst=500", // the default of 20 per second would be what a benchmark measures
		"--node-monitor-grace-period=5m", // a busy machine delays the fake nodes' heartbeats
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return await(ctx, kcm.Name(), func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: "default", Name: "default"}
		return c.client.Get(ctx, key, &corev1.ServiceAccount{})
	}, kcm, c.apiserver)
}

// startPods runs what pods need on a worker: a scheduler and nodes. On the manager no pod ever runs.
func (c *Cluster) startPods(ctx context.Context) error {
	if c.IsManager() {
		return nil
	}
	return together(ctx, c.startScheduler, c.startNodes)
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	scheduler, err := c.run("kube-scheduler",
		"--kubeconfig="+c.file("pki", "kube-scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.ports.scheduler),
		"--cert-dir="+c.file("run", "kube-scheduler"),
		"--leader-elect=false",
		"--kube-api-qps=300", "--kube-api-burst=500",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/healthz", c.ports.scheduler)
	return await(ctx, scheduler.Name(), answers(url), scheduler, c.apiserver)
}
