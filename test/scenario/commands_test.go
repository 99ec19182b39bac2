package scenario

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/scenario/world"
)

// commands is the language of the transcripts.
var commands map[string]func(*session, []string)

func init() {
	commands = map[string]func(*session, []string){
		// The stage.
		"workers":     (*session).workers,
		"config":      func(s *session, a []string) { s.world.SetWorkers(a) },
		"say-cluster": func(s *session, a []string) { s.world.AnnotateCluster(a[0], "ferry.dev/"+a[1], said(a)) },
		"say-queue": func(s *session, a []string) {
			s.world.AnnotateQueue("ferry.dev/"+a[0], said(append([]string{""}, a...)))
		},
		"say-job":    func(s *session, a []string) { s.world.AnnotateJob(a[0], "ferry.dev/"+a[1], said(a)) },
		"show-drain": func(s *session, a []string) { s.printf("%s: %s", a[0], s.world.Progress(a[0])) },
		"repoint":    func(s *session, a []string) { s.world.Repoint(a[0], a[1:]) },
		"advance":    func(s *session, a []string) { s.world.Advance(duration(a[0])) },
		"settle":     (*session).settle,
		"resync":     func(s *session, _ []string) { s.world.Resync(); s.world.Repeat() },
		"show":       (*session).show,
		"writes":     (*session).writes,
		// Users.
		"submit":      (*session).submit,
		"delete-pods": func(s *session, a []string) { s.world.DeletePods(a[0]) },
		"delete":      func(s *session, a []string) { s.world.Delete(a[0]) },
		"deactivate":  func(s *session, a []string) { s.setActive(a[0], false) },
		"activate":    func(s *session, a []string) { s.setActive(a[0], true) },
		"priority":    func(s *session, a []string) { s.world.SetPriority(a[0], int32(number(a[1]))) },
		"resize":      func(s *session, a []string) { s.world.Resize(a[0], int32(number(a[1]))) },
		"scale":       func(s *session, a []string) { s.world.Scale(a[0], int64(number(a[1]))) },
		"roll":        func(s *session, a []string) { s.world.Roll(a[0], a[1]) },
		"check":       func(s *session, a []string) { s.world.SetCheck(a[0], a[1], kueue.CheckState(a[2])) },
		"drop-check":  func(s *session, a []string) { s.world.DropCheck(a[0]) },
		"make-check":  func(s *session, _ []string) { s.world.MakeFerryCheck() },
		"nominate":    func(s *session, a []string) { s.world.Nominate(a[0], a[1:]) },
		// Kueue.
		"reserve": (*session).reserve,
		"evict":   func(s *session, a []string) { s.did(each(s.world.Workloads(a[0]), s.world.Kueue.Evict)) },
		"block-on": func(s *session, a []string) {
			s.did(each(s.world.Copies(a[0], a[1]), s.world.Worker(a[0]).Kueue.BlockOnGate))
		},
		"delay-topology": func(s *session, a []string) { s.did(each(s.world.Workloads(a[0]), s.world.Kueue.DelayTopology)) },
		"reserve-on":     (*session).reserveOn,
		"admit-on":       (*session).admitOn,
		"evict-on":       (*session).evictOn,
		"finish-on":      (*session).finishOn,
		"out-of-sync":    func(s *session, a []string) { s.did(s.world.OutOfSync(a[0], a[1])) },
		// People on workers.
		"delete-on":      func(s *session, a []string) { s.world.DeleteOnWorker(a[0], a[2], strings.ToTitle(a[1][:1])+a[1][1:]) },
		"foreign":        (*session).foreign,
		"remove-foreign": func(s *session, a []string) { s.world.RemoveForeign(a[0], a[1]) },
		"by-multikueue":  (*session).byMultiKueue,
		"drop-queue":     func(s *session, a []string) { s.world.DropQueue(a[0]) },
		"no-pods":        func(s *session, a []string) { s.world.Worker(a[0]).Cluster.NoPods = strings.Join(a[1:], " ") },
		"make-queue":     func(s *session, a []string) { s.world.MakeQueue(a[0]) },
	}
	maps.Copy(commands, surroundings)
}

// said is the value of an annotation; nothing takes it back.
func said(a []string) string { return strings.Join(a[2:], " ") }

// surroundings are the commands for the network, and for Ferry itself.
var surroundings = map[string]func(*session, []string){
	"lose":           func(s *session, a []string) { s.world.Cut(a[0]); s.world.Notice(a[0]) },
	"cut":            func(s *session, a []string) { s.world.Cut(a[0]) },
	"return":         func(s *session, a []string) { s.world.Mend(a[0]) },
	"delete-cluster": func(s *session, a []string) { s.world.DeleteCluster(a[0]) },
	"remove-cluster": func(s *session, a []string) { s.world.RemoveCluster(a[0]) },
	"webhook":        func(s *session, a []string) { s.world.Kueue.Ungated = a[0] == "off" },
	"topology":       func(s *session, a []string) { s.world.Kueue.Topology = a[0] == "on" },
	"stop-ferry":     func(s *session, _ []string) { s.world.StopFerry() },
	"start-ferry":    func(s *session, _ []string) { s.world.StartFerry() },
	"restart-ferry":  func(s *session, _ []string) { s.world.StopFerry(); s.world.StartFerry() },
	"hold":           func(s *session, a []string) { s.world.Held[a[0]] = true },
	"hold-kind":      func(s *session, a []string) { s.world.Held[a[0]+" "+a[1]] = true },
	"deliver":        (*session).deliver,
	"unserve":        func(s *session, a []string) { s.world.Unserve(a[0]) },
	"unread":         func(s *session, _ []string) { s.world.LetJobsBeRead(false) },
	"read":           func(s *session, _ []string) { s.world.LetJobsBeRead(true) },
	"hold-sync":      func(s *session, a []string) { s.world.Held["sync "+a[0]] = true },
	"fail-next":      (*session).failNext,
}

func duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return d
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *session) did(happened bool) {
	if !happened {
		s.printf("nothing to do")
	}
}

// workers w1 w2 [dispatcher=incremental|external] [step=1] [round=5m] [checks=a,b] [capacity=1] [lost-timeout=15m]
func (s *session) workers(words []string) {
	o := world.Options{Dispatcher: placement.AllAtOnceName, StepSize: 1, Round: 5 * time.Minute, Capacity: 8, LostTimeout: 15 * time.Minute}
	for _, word := range words {
		name, value, isOption := strings.Cut(word, "=")
		switch {
		case !isOption:
			o.Workers = append(o.Workers, word)
		case name == "dispatcher" && value == "incremental":
			o.Dispatcher = placement.IncrementalName
		case name == "dispatcher":
			o.Dispatcher = world.ExternalDispatcher
		case name == "step":
			o.StepSize = number(value)
		case name == "round":
			o.Round = duration(value)
		case name == "checks":
			o.Checks = strings.Split(value, ",")
		case name == "lost-timeout":
			o.LostTimeout = duration(value)
		case name == "preemption-timeout":
			o.PreemptionTimeout = duration(value)
		case name == "retain":
			o.Retain = duration(value)
		case name == "capacity":
			o.Capacity = number(value)
		}
	}
	s.world, s.seen = world.New(o), map[string]int{}
}

// submit job NAME [PARALLELISM] | submit plain-job NAME | submit unrequested-job NAME | submit set NAME [REPLICAS] | submit pod NAME [FAMILY] | submit other KIND NAME
func (s *session) submit(a []string) {
	size := int64(1)
	if len(a) > 2 && a[0] != "other" && a[0] != "pod" {
		size = int64(number(a[2]))
	}
	var err error
	switch a[0] {
	case "job":
		err = s.world.Submit(a[1], size)
	case "unrequested-job":
		err = s.world.SubmitUnrequested(a[1])
	case "plain-job":
		err = s.world.SubmitJob(world.NewJob(a[1], size))
	case "set":
		err = s.world.SubmitSet(a[1], size)
	case "pod":
		err = s.world.SubmitPod(a[1], strings.Join(a[2:], ""))
	case "other":
		err = s.world.SubmitOther(a[1], a[2])
	}
	if err != nil {
		s.printf("%v", err)
	}
}

func (s *session) setActive(name string, active bool) {
	if wl := s.world.Workload(name); wl != nil {
		s.world.Kueue.SetActive(wl, active)
	}
}

func (s *session) reserve(a []string) {
	// Kueue has to make the Workload, or to end the last eviction, first.
	s.world.SettleKueue()
	wls := s.world.Workloads(a[0])
	if len(wls) == 0 {
		wls = []*kueue.Workload{s.world.AnyWorkload(a[0])}
	}
	s.did(each(wls, s.world.Kueue.Reserve))
}

// each does something to all Workloads of a job, and tells whether it was to do.
func each(wls []*kueue.Workload, do func(*kueue.Workload) bool) bool {
	did := false
	for _, wl := range wls {
		did = wl != nil && do(wl) || did
	}
	return did
}

func (s *session) reserveOn(a []string) {
	s.did(each(s.world.Copies(a[0], a[1]), s.world.Worker(a[0]).Kueue.Reserve))
}

func (s *session) admitOn(a []string) {
	s.did(each(s.world.Copies(a[0], a[1]), s.world.Worker(a[0]).Kueue.Admit))
}

func (s *session) evictOn(a []string) {
	s.did(each(s.world.Copies(a[0], a[1]), s.world.Worker(a[0]).Kueue.Evict))
}

func (s *session) finishOn(a []string) {
	s.world.SettleKueue()
	job := s.world.JobOn(a[0], a[1])
	s.did(job != nil && s.world.Worker(a[0]).Kueue.Finish(job, !slices.Contains(a, "failed")))
}

func (s *session) foreign(a []string) {
	origin := ""
	if len(a) > 2 {
		origin = a[2]
	}
	if err := s.world.Foreign(a[0], a[1], origin); err != nil {
		s.printf("%v", err)
	}
}

// by-multikueue WORKER [ORIGIN]: what the worker holds was made by MultiKueue, with Ferry's origin if none is said
func (s *session) byMultiKueue(a []string) {
	origin := world.Origin
	if len(a) > 1 {
		origin = a[1]
	}
	s.world.ByMultiKueue(a[0], origin)
}

// fail-next WORKER VERB CODE
func (s *session) failNext(a []string) {
	if s.world.Faults.Once == nil {
		s.world.Faults.Once = map[string]int{}
	}
	s.world.Faults.Once[a[0]+" "+a[1]] = number(a[2])
}

// deliver [WORKER…]: what was held comes, from all when none is named
func (s *session) deliver(a []string) {
	for held := range s.world.Held {
		if len(a) == 0 || slices.ContainsFunc(a, func(name string) bool { return slices.Contains(strings.Fields(held), name) }) {
			delete(s.world.Held, held)
		}
	}
}

func (s *session) writes(_ []string) {
	s.printf("%d requests", s.world.Writes-s.told)
	s.told = s.world.Writes
}
