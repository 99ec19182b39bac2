// Package audit reads Kubernetes audit logs and counts who asked for what.
package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Request is one API request as the audit log tells it.
type Request struct {
	At          time.Time // received
	Done        time.Time // answered; of a watch, begun
	User        string
	UserAgent   string
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// FieldManager is the query parameter of that name, "" when there is none.
	FieldManager string
	Code         int // HTTP status; 0 when the log has none
}

// Key is what requests are counted by.
type Key struct{ User, Verb, Resource, Subresource string }

// Counts says how often each kind of request was made.
type Counts map[Key]int

// Total is the sum of all counts.
func (c Counts) Total() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

// CountRequests counts the requests in the log file that came at or after since and that keep accepts (nil keeps
// all). A watch counts once, when it begins. A half-written last line is left out.
func CountRequests(file string, since time.Time, keep func(Request) bool) (Counts, error) {
	counts := Counts{}
	err := Each(file, since, func(r Request) {
		if keep == nil || keep(r) {
			counts[Key{r.User, r.Verb, r.Resource, r.Subresource}]++
		}
	})
	return counts, err
}

// Each calls visit for every request in the log file at or after since, in the log's order.
func Each(file string, since time.Time, visit func(Request)) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer f.Close()
	if err := read(f, since, visit); err != nil {
		return fmt.Errorf("read audit log %s: %w", file, err)
	}
	return nil
}

type event struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	URI        string `json:"requestURI"`
	ReceivedAt string `json:"requestReceivedTimestamp"`
	StageAt    string `json:"stageTimestamp"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func read(from io.Reader, since time.Time, visit func(Request)) error {
	in := bufio.NewReaderSize(from, 1<<20)
	watches := map[string]bool{} // a watch is told when it begins and again when it ends
	for line := 1; ; line++ {
		data, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // data, if any, is a line that is still being written
		}
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		r, err := e.request()
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if r.At.Before(since) || watches[e.AuditID] || e.Stage == "RequestReceived" {
			continue
		}
		if e.Stage == "ResponseStarted" {
			watches[e.AuditID] = true
		}
		visit(r)
	}
}

func (e *event) request() (Request, error) {
	at, err := time.Parse(time.RFC3339Nano, e.ReceivedAt)
	if err != nil {
		return Request{}, fmt.Errorf("requestReceivedTimestamp: %w", err)
	}
	done, err := time.Parse(time.RFC3339Nano, e.StageAt)
	if err != nil {
		return Request{}, fmt.Errorf("stageTimestamp: %w", err)
	}
	return Request{
		At: at, Done: done, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		FieldManager: fieldManager(e.URI),
	}, nil
}

func fieldManager(uri string) string {
	if _, query, found := strings.Cut(uri, "?"); found && strings.Contains(query, "fieldManager=") {
		values, _ := url.ParseQuery(query) // what cannot be parsed is left out
		return values.Get("fieldManager")
	}
	return ""
}

// Keys are what was counted, sorted by user, resource, subresource and verb.
func (c Counts) Keys() []Key {
	return slices.SortedFunc(maps.Keys(c), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
	})
}
