package demo

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// request is one on the Workload "wl", received and answered so many milliseconds after noon.
func request(user, verb string, at, done int) audit.Request {
	r := audit.Request{
		At: noon.Add(time.Duration(at) * time.Millisecond), Done: noon.Add(time.Duration(done) * time.Millisecond),
		User: user, Verb: verb, Resource: "workloads", Name: "wl", Code: 200,
	}
	if verb == "patch" {
		r.Subresource, r.FieldManager = "status", kueueAdmission
	}
	return r
}

func jobRequest(at, done int) audit.Request {
	r := request(playground.UserFerry, "create", at, done)
	r.Resource, r.Name = "jobs", "job"
	return r
}

func podsReady(at, done int) audit.Request {
	r := request(playground.UserKueue, "patch", at, done)
	r.FieldManager = "kueue-job-controller-PodsReady"
	return r
}

// job is a Job and its Workload.
var job = way{workload: "wl", objects: []made{{"jobs", "job"}}}

const ferry, kueueUser = playground.UserFerry, playground.UserKueue

// plain is a dispatch on a quiet system: reserved at 20, offered at 40, admitted at 60, claimed, placed at 90.
func plain() logs {
	return logs{
		"manager": {
			request(kueueUser, "create", 0, 5), request(kueueUser, "patch", 10, 20), podsReady(21, 22),
			request(ferry, "patch", 25, 30), request(ferry, "patch", 65, 75), request(ferry, "patch", 95, 99),
		},
		"w1": {request(ferry, "create", 32, 41), request(kueueUser, "patch", 50, 70), request(ferry, "delete", 80, 90)},
		"w2": {request(ferry, "create", 32, 40), request(kueueUser, "patch", 50, 60), podsReady(61, 62), jobRequest(80, 90)},
	}
}

func TestRideOf(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, c := range map[string]struct {
		change func(logs)
		want   Ride
	}{
		"quiet": {change: func(logs) {}, want: Ride{Worker: "w2", Total: ms(70), Waited: ms(20)}},
		"Ferry answers before the reservation's own answer is logged": {
			change: func(l logs) { l["manager"][1].Done = noon.Add(ms(28)) },
			want:   Ride{Worker: "w2", Total: ms(65), Waited: ms(20)},
		},
		"messages are written while it waits for a worker's quota": {
			change: func(l logs) {
				for i := range l["w2"][1:] {
					l["w2"][i+1].At = l["w2"][i+1].At.Add(time.Minute)
					l["w2"][i+1].Done = l["w2"][i+1].Done.Add(time.Minute)
				}
				for i := range l["manager"][4:] {
					l["manager"][i+4].At = l["manager"][i+4].At.Add(time.Minute)
				}
				l["manager"] = slices.Insert(l["manager"], 4, request(ferry, "patch", 2000, 2010))
			},
			want: Ride{Worker: "w2", Total: ms(60070), Waited: ms(60020)},
		},
		"Kueue adds the check after the reservation": {
			change: func(l logs) {
				l["manager"] = slices.Insert(l["manager"], 3, request(kueueUser, "update", 21, 24))
				l["manager"][3].Subresource = "status"
			},
			want: Ride{Worker: "w2", Total: ms(70), Checked: ms(4), Waited: ms(20)},
		},
		"Kueue added the check before the reservation": {
			change: func(l logs) {
				l["manager"] = slices.Insert(l["manager"], 1, request(kueueUser, "update", 6, 9))
				l["manager"][1].Subresource = "status"
			},
			want: Ride{Worker: "w2", Total: ms(70), Waited: ms(20)},
		},
		"an earlier round on the other worker does not count": {
			change: func(l logs) {
				early := []audit.Request{request(kueueUser, "patch", -900, -800), request(ferry, "patch", -790, -780)}
				l["manager"] = append(early, l["manager"]...)
				l["w1"] = append([]audit.Request{request(ferry, "create", -700, -690), jobRequest(-600, -590)}, l["w1"]...)
			},
			want: Ride{Worker: "w2", Total: ms(70), Waited: ms(20)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := plain()
			c.change(l)
			ride, err := rideOf(l, job)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ride).To(Equal(c.want))
			g.Expect(ride.Ferry()).To(Equal(c.want.Total - c.want.Checked - c.want.Waited))
		})
	}
}

func TestRideWithoutAStep(t *testing.T) {
	g := NewWithT(t)
	_, err := rideOf(plain(), way{workload: "wl", objects: []made{{"jobs", "other"}}})
	g.Expect(err).To(MatchError(ContainSubstring("no worker was given what Workload wl is for")))
	for _, cluster := range []string{"manager", "w2"} {
		l := plain()
		l[cluster] = slices.DeleteFunc(l[cluster], func(r audit.Request) bool { return r.User == kueueUser })
		_, err := rideOf(l, job)
		g.Expect(err).To(MatchError(ContainSubstring("a step before jobs job on worker w2 is missing")), cluster)
	}
}
