package jobs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServer is as much of the manager's API server as it takes to come to know one kind, Task, whose CRD comes and goes.
type apiServer struct {
	*httptest.Server

	mu        sync.Mutex
	served    bool
	forbidden bool
	version   int
	objects   map[string]map[string]any // tasks, by name
	watches   map[chan event]string     // to the resource
}

type event struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

var task = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Task"}

const (
	tasks = "tasks"
	crds  = "customresourcedefinitions"
)

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{version: 1, objects: map[string]map[string]any{}, watches: map[chan event]string{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// mapper knows what there may be; what there is the server says.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(task, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	return m
}

// put makes a task.
func (a *apiServer) put(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[name] = a.objectLocked("example.com/v1", "Task", name)
	a.tellLocked(tasks, event{"ADDED", a.objects[name]})
}

func (a *apiServer) objectLocked(apiVersion, kind, name string) map[string]any {
	a.version++
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"name": name, "namespace": "ns", "uid": name + "-uid", "resourceVersion": strconv.Itoa(a.version),
	}}
}

// install and uninstall bring and take the CRD; the latter deletes the objects, unless they are kept out of sight.
func (a *apiServer) install() { a.definition(true, false) }

func (a *apiServer) uninstall(keep bool) { a.definition(false, keep) }

func (a *apiServer) definition(served, keep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, obj := range a.objects {
		if served || keep {
			break
		}
		a.tellLocked(tasks, event{"DELETED", obj})
		delete(a.objects, name)
	}
	a.served = served
	crd := a.objectLocked("meta.k8s.io/v1", "PartialObjectMetadata", "tasks.example.com")
	delete(crd["metadata"].(map[string]any), "namespace")
	a.tellLocked(crds, event{map[bool]string{true: "ADDED", false: "DELETED"}[served], crd})
}

func (a *apiServer) tellLocked(resource string, e event) {
	for watch, of := range a.watches {
		if of == resource {
			watch <- e
		}
	}
}

// watched tells whether somebody watches a resource; events before that are lost.
func (a *apiServer) watched(resource string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.watches {
		if of == resource {
			return true
		}
	}
	return false
}

func (a *apiServer) forbid(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forbidden = is
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	a.mu.Lock()
	served, forbidden := a.served, a.forbidden
	a.mu.Unlock()
	switch {
	case resource != crds && !served:
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case resource == "v1":
		reply(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": []any{
			map[string]any{"name": tasks, "kind": "Task", "namespaced": true, "verbs": []string{"list", "watch"}},
		}})
	case resource == tasks && forbidden:
		fail(w, http.StatusForbidden, "Forbidden", `tasks.example.com is forbidden: User "ferry" cannot list resource "tasks"`)
	case r.URL.Query().Get("watch") != "":
		a.watch(w, r, resource)
	default:
		a.list(w, resource)
	}
}

func (a *apiServer) list(w http.ResponseWriter, resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	kind, apiVersion := "TaskList", "example.com/v1"
	if resource == crds {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	} else {
		for _, obj := range a.objects {
			items = append(items, obj)
		}
	}
	reply(w, map[string]any{
		"apiVersion": apiVersion, "kind": kind, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)},
	})
}

// watch goes on when the CRD is gone, as those of a real API server do for a while.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		fail(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is not known here")
		return
	}
	events := make(chan event, 100)
	a.mu.Lock()
	a.watches[events] = resource
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, events)
	}()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			reply(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

func reply(w http.ResponseWriter, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(fmt.Sprintf("encoding an answer: %v", err))
	}
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	reply(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}
