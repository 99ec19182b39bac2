package ray

import "net/http"

// app is one application of a Serve config, as far as its status depends on it.
type app struct {
	Name        string       `json:"name"`
	RoutePrefix string       `json:"route_prefix"`
	Deployments []deployment `json:"deployments"`
}

type deployment struct {
	Name string `json:"name"`
}

type deploymentStatus struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type appStatus struct {
	Name        string                      `json:"name"`
	Status      string                      `json:"status"`
	RoutePrefix string                      `json:"route_prefix,omitempty"`
	Deployments map[string]deploymentStatus `json:"deployments"`
}

// defaultApp is what an application without a name is called.
const defaultApp = "default"

// deploy takes the place of all applications.
func (s *Server) deploy(w http.ResponseWriter, r *http.Request) {
	var config struct {
		Applications []app `json:"applications"`
	}
	if !read(w, r, &config) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head(r).apps = config.Applications
}

// applications tells that all that was deployed runs and is healthy.
func (s *Server) applications(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]appStatus{}
	for _, a := range s.head(r).apps {
		if a.Name == "" {
			a.Name = defaultApp
		}
		status := appStatus{Name: a.Name, Status: running, RoutePrefix: a.RoutePrefix, Deployments: map[string]deploymentStatus{}}
		for _, d := range a.Deployments {
			status.Deployments[d.Name] = deploymentStatus{Name: d.Name, Status: "HEALTHY"}
		}
		all[a.Name] = status
	}
	answer(w, map[string]any{"applications": all})
}
