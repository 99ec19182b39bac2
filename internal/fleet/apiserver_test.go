package fleet

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// fault is how a request goes wrong.
type fault func(api *apiServer, w http.ResponseWriter, r *http.Request)

// hang accepts the request and never answers.
func hang(api *apiServer, _ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-api.closing:
	}
	panic(http.ErrAbortHandler)
}

// drop cuts the request without an answer.
func drop(*apiServer, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// answer gives an error of the API.
func answer(code int, reason, message string) fault {
	return func(_ *apiServer, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
		})
	}
}

func forbiddenAnswer(verb, resource string) fault {
	return answer(http.StatusForbidden, "Forbidden", fmt.Sprintf(
		`%s is forbidden: User "ferry" cannot %s resource "%s" at the cluster scope`, resource, verb, resource))
}

var notFoundAnswer = answer(http.StatusNotFound, "NotFound", "the server could not find the requested resource")

// apiServer is as much of a worker's API server as a connection needs, with faults on demand.
type apiServer struct {
	*httptest.Server
	closing chan struct{}

	mu       sync.Mutex
	cluster  string // where objects are made, for their UIDs
	tokens   []string
	asked    map[string]int                         // requests, by verb, resource and token
	kinds    map[schema.GroupVersionResource]string // what is served
	objects  map[string]*unstructured.Unstructured  // by resource/namespace/name
	faults   map[string]fault                       // by "verb resource", "verb *" or "*"
	version  int
	watchers map[chan watchEvent]string // to resource
}

type watchEvent struct {
	kind   string
	object *unstructured.Unstructured
	end    bool
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	kueueGroup := schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	api := &apiServer{
		closing: make(chan struct{}), tokens: []string{"good"}, version: 1,
		objects: map[string]*unstructured.Unstructured{}, faults: map[string]fault{}, watchers: map[chan watchEvent]string{},
		kinds: map[schema.GroupVersionResource]string{
			kueueGroup.WithResource("workloads"): "Workload", kueueGroup.WithResource("localqueues"): "LocalQueue",
			{Group: "batch", Version: "v1", Resource: "jobs"}: "Job",
		},
	}
	api.Server = httptest.NewUnstartedServer(api)
	api.Config.ErrorLog = nil
	api.EnableHTTP2 = true
	api.StartTLS()
	t.Cleanup(func() {
		close(api.closing)
		api.CloseClientConnections()
		api.Close()
	})
	return api
}

func (a *apiServer) config(token string) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	return &rest.Config{Host: a.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// fail makes requests go wrong from now on; a nil fault heals them. What is under way on the resource ends.
func (a *apiServer) fail(what string, f fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.faults, what)
	if f != nil {
		a.faults[what] = f
	}
	for watcher := range a.watchers {
		watcher <- watchEvent{end: true}
		delete(a.watchers, watcher)
	}
}

// allow says which tokens are good.
func (a *apiServer) allow(tokens ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = tokens
}

func (a *apiServer) serve(gvr schema.GroupVersionResource, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[gvr] = kind
}

// put creates or changes an object and tells the watchers.
func (a *apiServer) put(resource, apiVersion, kind, name, origin string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	if !clusterWide(resource) {
		obj.SetNamespace("ns")
	}
	obj.SetName(name)
	obj.SetUID(types.UID(name + " of " + a.cluster))
	obj.SetAnnotations(map[string]string{"big": "value"})
	obj.SetResourceVersion(strconv.Itoa(a.version))
	if origin != "" {
		obj.SetLabels(map[string]string{"kueue.x-k8s.io/multikueue-origin": origin})
	}
	key, verb := resource+"/ns/"+name, "ADDED"
	if a.objects[key] != nil {
		verb = "MODIFIED"
	}
	a.objects[key] = obj
	a.tellLocked(resource, watchEvent{kind: verb, object: obj})
}

// clusterWide tells whether the objects of a resource have no namespace.
func clusterWide(resource string) bool {
	return slices.Contains([]string{"clusterqueues", "cohorts", "resourceflavors"}, resource)
}

func (a *apiServer) remove(resource, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := resource + "/ns/" + name
	obj := a.objects[key]
	delete(a.objects, key)
	a.tellLocked(resource, watchEvent{kind: "DELETED", object: obj})
}

func (a *apiServer) tellLocked(resource string, e watchEvent) {
	for watcher, of := range a.watchers {
		if of == resource {
			watcher <- e
		}
	}
}

// ServeHTTP implements http.Handler.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb, gv, resource := parseRequest(r)
	a.mu.Lock()
	f := a.faults["*"]
	for _, key := range []string{verb + " *", verb + " " + resource} {
		if special, found := a.faults[key]; found {
			f = special
		}
	}
	authorized := slices.Contains(a.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	a.noteLocked(verb, resource, r)
	_, served := a.kinds[gv.WithResource(resource)]
	a.mu.Unlock()
	switch {
	case f != nil:
		f(a, w, r)
	case !authorized:
		answer(http.StatusUnauthorized, "Unauthorized", "Unauthorized")(a, w, r)
	case verb == "readyz":
		_, _ = w.Write([]byte("ok"))
	case verb == "discover":
		a.discover(w, r, gv)
	case !served:
		notFoundAnswer(a, w, r)
	case verb == "watch":
		a.watch(w, r, resource)
	case verb == "get":
		a.get(w, r, resource)
	case verb == "list", verb == "probe":
		a.list(w, r, gv, resource)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x","namespace":"ns"}}`))
	}
}

func (a *apiServer) get(w http.ResponseWriter, r *http.Request, resource string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	a.mu.Lock()
	obj := a.objects[resource+"/"+parts[4]+"/"+parts[6]]
	a.mu.Unlock()
	if obj == nil {
		notFoundAnswer(a, w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(obj)
}

func parseRequest(r *http.Request) (verb string, gv schema.GroupVersion, resource string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "readyz" || len(parts) < 3 {
		return parts[0], gv, ""
	}
	gv, rest := schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	query := r.URL.Query()
	switch {
	case len(rest) == 0:
		return "discover", gv, ""
	case r.Method != http.MethodGet:
		return "write", gv, rest[2]
	case len(rest) == 4:
		return "get", gv, rest[2]
	case query.Get("watch") == "true":
		return "watch", gv, rest[0]
	case query.Get("limit") == "1":
		return "probe", gv, rest[0]
	}
	return "list", gv, rest[0]
}

func (a *apiServer) discover(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) {
	a.mu.Lock()
	var resources []map[string]any
	for gvr, kind := range a.kinds {
		if gvr.GroupVersion() == gv {
			resources = append(resources, map[string]any{
				"name": gvr.Resource, "singularName": strings.ToLower(kind), "kind": kind, "namespaced": true, "verbs": []string{"list", "watch"},
			})
		}
	}
	a.mu.Unlock()
	if resources == nil {
		notFoundAnswer(a, w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv.String(), "resources": resources,
	})
}

// selected lists what a request asks for, as it asks for it.
func (a *apiServer) selectedLocked(r *http.Request, resource string) []*unstructured.Unstructured {
	selected := []*unstructured.Unstructured{}
	for _, key := range slices.Sorted(maps.Keys(a.objects)) {
		if strings.HasPrefix(key, resource+"/") && matches(r, a.objects[key]) {
			selected = append(selected, shaped(r, a.objects[key]))
		}
	}
	return selected
}

func matches(r *http.Request, obj *unstructured.Unstructured) bool {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
}

func asMetadata(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func shaped(r *http.Request, obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	if asMetadata(r) {
		obj.SetAPIVersion("meta.k8s.io/v1")
		obj.SetKind("PartialObjectMetadata")
	}
	return obj
}

func (a *apiServer) list(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, resource string) {
	a.mu.Lock()
	items, version, kind := a.selectedLocked(r, resource), a.version, a.kinds[gv.WithResource(resource)]
	a.mu.Unlock()
	apiVersion := gv.String()
	if asMetadata(r) {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": kind + "List", "apiVersion": apiVersion, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)},
	})
}

func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	events := make(chan watchEvent, 1000)
	a.mu.Lock()
	a.watchers[events] = resource
	initial, version := a.selectedLocked(r, resource), a.version
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.watchers, events)
		a.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := json.NewEncoder(w)
	send := func(kind string, obj any) {
		_ = out.Encode(map[string]any{"type": kind, "object": obj})
		w.(http.Flusher).Flush()
	}
	w.(http.Flusher).Flush()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, obj := range initial {
			send("ADDED", obj)
		}
		send("BOOKMARK", a.bookmark(r, resource, version))
	}
	for {
		select {
		case <-a.closing:
			return
		case <-r.Context().Done():
			return
		case e := <-events:
			if e.end {
				return
			}
			if matches(r, e.object) {
				send(e.kind, shaped(r, e.object))
			}
		}
	}
}

func (a *apiServer) bookmark(r *http.Request, resource string, version int) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := &unstructured.Unstructured{}
	for gvr, kind := range a.kinds {
		if gvr.Resource == resource {
			mark.SetAPIVersion(gvr.GroupVersion().String())
			mark.SetKind(kind)
		}
	}
	mark.SetResourceVersion(strconv.Itoa(version))
	mark.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
	return shaped(r, mark)
}
