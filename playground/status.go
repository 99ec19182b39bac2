package playground

import (
	"time"

	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/playground/proxy"
)

// Status is what a playground tells about itself.
type Status struct {
	Name         string            `json:"name"`
	Dir          string            `json:"dir"`
	PID          int               `json:"pid"` // of the process that owns it
	Ready        bool              `json:"ready"`
	FerryMetrics string            `json:"ferryMetrics,omitempty"`
	Frameworks   []string          `json:"frameworks"` // that Kueue has on, in every cluster
	Clusters     []ClusterStatus   `json:"clusters"`
	Components   []ComponentStatus `json:"components"`
	Links        []LinkStatus      `json:"links"`
}

// ClusterStatus says where a cluster is.
type ClusterStatus struct {
	Name       string `json:"name"`
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	AuditLog   string `json:"auditLog"`
}

// ComponentStatus says how a process is.
type ComponentStatus struct {
	Name  string        `json:"name"`
	State process.State `json:"state"`
	PID   int           `json:"pid"`
	Log   string        `json:"log"`
}

// LinkStatus says what the proxy in front of a worker does.
type LinkStatus struct {
	Worker  string        `json:"worker"`
	Address string        `json:"address"`
	Mode    proxy.Mode    `json:"mode"`
	Delay   time.Duration `json:"delay,omitempty"`
}

// Status tells what runs now.
func (p *Playground) Status() Status {
	s := Status{Name: p.Name(), Dir: p.Dir(), FerryMetrics: p.FerryMetrics(), Frameworks: p.options.Frameworks}
	for _, c := range p.Clusters() {
		s.Clusters = append(s.Clusters, ClusterStatus{
			Name: c.Name, Server: c.Server(), Kubeconfig: c.AdminKubeconfig(), AuditLog: c.AuditLog(),
		})
		if link := p.Link(c.Name); link != nil {
			mode, delay := link.Mode()
			s.Links = append(s.Links, LinkStatus{Worker: c.Name, Address: link.Addr(), Mode: mode, Delay: delay})
		}
	}
	for _, c := range p.Components() {
		s.Components = append(s.Components, ComponentStatus{Name: c.Name(), State: c.State(), PID: c.PID(), Log: c.LogFile()})
	}
	return s
}
