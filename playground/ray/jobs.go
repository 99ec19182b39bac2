package ray

import (
	"net/http"
	"time"
)

// Ray's own words for the state of a job.
const (
	running   = "RUNNING"
	succeeded = "SUCCEEDED"
	failed    = "FAILED"
	stopped   = "STOPPED"
)

// job is one that was submitted. It needs no clock of its own: what has become of it follows from the time.
type job struct {
	entrypoint string
	began      time.Time
	stopped    time.Time // zero unless somebody stopped it
}

// info is a job as the dashboard tells of it; times are milliseconds since 1970, 0 when there is none.
type info struct {
	ID         string `json:"job_id"`
	Submission string `json:"submission_id"`
	Status     string `json:"status"`
	Entrypoint string `json:"entrypoint,omitempty"`
	Message    string `json:"message,omitempty"`
	Start      int64  `json:"start_time"`
	End        int64  `json:"end_time,omitempty"`
}

func (s *Server) tell(id string, j job) info {
	told := info{ID: id, Submission: id, Status: running, Entrypoint: j.entrypoint, Start: j.began.UnixMilli(), Message: "Job is running."}
	runFor, fails := runs(id, s.runFor)
	end := j.began.Add(runFor)
	if j.began.Before(s.ended) && s.ended.Before(end) {
		end = s.ended
	}
	switch {
	case !j.stopped.IsZero():
		told.Status, told.Message, told.End = stopped, "Job was stopped.", j.stopped.UnixMilli()
	case s.now().Before(end):
	case fails:
		told.Status, told.Message, told.End = failed, "Job failed, as its id asks for.", end.UnixMilli()
	default:
		told.Status, told.Message, told.End = succeeded, "Job finished successfully.", end.UnixMilli()
	}
	return told
}

// info also submits: the pod that would do so is a fake. So there is no job that the head does not know.
func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, h := r.PathValue("id"), s.head(r)
	j, known := h.jobs[id]
	if !known {
		j = job{began: s.now()}
		h.jobs[id] = j
	}
	answer(w, s.tell(id, j))
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []info{}
	for id, j := range s.head(r).jobs {
		all = append(all, s.tell(id, j))
	}
	answer(w, all)
}

func (s *Server) submit(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Entrypoint string `json:"entrypoint"`
		ID         string `json:"submission_id"`
	}
	if !read(w, r, &asked) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.head(r)
	if _, known := h.jobs[asked.ID]; known {
		http.Error(w, "Please use a different submission_id", http.StatusInternalServerError)
		return
	}
	h.jobs[asked.ID] = job{entrypoint: asked.Entrypoint, began: s.now()}
	answer(w, map[string]string{"job_id": asked.ID, "submission_id": asked.ID})
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, h := r.PathValue("id"), s.head(r)
	j, known := h.jobs[id]
	if !known {
		http.NotFound(w, r)
		return
	}
	does := s.tell(id, j).Status == running
	if does {
		j.stopped = s.now()
		h.jobs[id] = j
	}
	answer(w, map[string]bool{"stopped": does})
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.head(r).jobs, r.PathValue("id"))
	answer(w, map[string]bool{"deleted": true})
}

func (s *Server) logs(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]string{"logs": ""})
}
