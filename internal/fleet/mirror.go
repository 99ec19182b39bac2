package fleet

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// mirrored says what a mirror holds.
type mirrored struct {
	object   client.Object // typed, unstructured or metadata: decides how it is read
	selector labels.Selector
	strip    toolscache.TransformFunc
	index    Index
	handler  toolscache.ResourceEventHandler
	failed   func(err error, stale bool) // a list or watch failed; stale: it has for long
	moved    func()                      // more of what is read at first has come; may be nil
}

// mirror is the cache of one kind on one worker. One cache per kind rather than one for all, so that each can fail,
// tell why, and end on its own.
type mirror struct {
	cache.Cache
	held   toolscache.Indexer
	index  Index
	synced <-chan struct{}
}

// jobIndex is the index of a mirror by the buckets of its jobs: an entry costs a third of a kilobyte, and with one for
// each job that would be as much as the rest of a copy.
const jobIndex = "job"

var (
	buckets    = bucketNames()
	bucketSeed = maphash.MakeSeed()
)

func bucketNames() (names [4096]string) {
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

func bucketOf(job kinds.Ref) string {
	return buckets[maphash.Comparable(bucketSeed, job)%uint64(len(buckets))]
}

// find gives an object as the mirror holds it; nil when it does not.
func (m *mirror) find(key string) client.Object {
	obj, _, _ := m.held.GetByKey(key) // a store in memory gives no errors
	found, _ := obj.(client.Object)
	return found
}

// findAll appends the objects that the index has of a job, as the mirror holds them.
func (m *mirror) findAll(job kinds.Ref, to []client.Object) ([]client.Object, error) {
	objs, err := m.held.ByIndex(jobIndex, bucketOf(job))
	if err != nil {
		return to, err
	}
	for _, obj := range objs {
		o, ok := obj.(client.Object)
		if !ok {
			continue
		}
		if of, has := m.index(o); has && of == job {
			to = append(to, o)
		}
	}
	return to, nil
}

// startMirror fills a mirror until ctx ends. It returns at once; the mirror must not be read before it is synced.
func (c *conn) startMirror(ctx context.Context, what mirrored) (*mirror, error) {
	var informer cache.Informer
	watch := &watchHealth{patience: c.options.KindRecheck}
	first := &reading{moved: what.moved, most: map[bool]int64{}}
	made, err := cache.New(c.config, cache.Options{
		HTTPClient:                  first.client(c.http),
		Scheme:                      c.options.Scheme,
		Mapper:                      c.mapper,
		ReaderFailOnMissingInformer: true, // a read must never start an informer
		DefaultLabelSelector:        what.selector,
		DefaultTransform:            what.strip,
		DefaultWatchErrorHandler: func(_ context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return // asks for a new list, which follows by itself
			}
			what.failed(err, watch.failed(time.Now(), r.LastSyncResourceVersion()))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache for %T: %w", what.object, err)
	}
	informer, err = made.GetInformer(ctx, what.object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("making an informer for %T: %w", what.object, err)
	}
	first.synced = informer.HasSyncedChecker().Done()
	held, err := indexed(informer, what.index)
	if err != nil {
		return nil, fmt.Errorf("indexing %T: %w", what.object, err)
	}
	if _, err := informer.AddEventHandler(what.handler); err != nil {
		return nil, fmt.Errorf("listening to an informer for %T: %w", what.object, err)
	}
	c.tasks.Go(func() {
		if err := made.Start(ctx); err != nil {
			what.failed(err, true)
		}
	})
	return &mirror{Cache: made, held: held, index: what.index, synced: first.synced}, nil
}

// indexed adds an index to an informer that has not started, and returns its store. The index of a controller-runtime
// cache would hold each object twice, and can be read by a copy only.
func indexed(informer cache.Informer, index Index) (toolscache.Indexer, error) {
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("%T has no store", informer)
	}
	if index == nil {
		return shared.GetIndexer(), nil
	}
	err := shared.AddIndexers(toolscache.Indexers{jobIndex: func(in any) ([]string, error) {
		if obj, ok := in.(client.Object); ok {
			if job, has := index(obj); has {
				return []string{bucketOf(job)}, nil
			}
		}
		return nil, nil
	}})
	return shared.GetIndexer(), err
}

// watchHealth tells a watch that stumbles from one that has failed for long without getting anywhere.
type watchHealth struct {
	patience time.Duration
	from     time.Time // of the present run of failures
	last     time.Time
	version  string // how far the cache was at the last failure
}

// failed notes a failure at now, and tells whether the run of failures is longer than the patience.
func (h *watchHealth) failed(now time.Time, version string) bool {
	// A reflector that fails tries again within a minute; a longer silence means that it worked in between.
	if h.from.IsZero() || version != h.version || now.Sub(h.last) > 2*time.Minute {
		h.from = now
	}
	h.last, h.version = now, version
	return now.Sub(h.from) > h.patience
}

// stripManaged drops what nobody here reads and what is often the larger part of an object.
func stripManaged(in any) (any, error) {
	if obj, err := meta.Accessor(in); err == nil && obj.GetManagedFields() != nil {
		obj.SetManagedFields(nil)
	}
	return in, nil
}

// stripWorkload makes a copy as small as it can be: there is one on each worker for every job that waits.
func (c *conn) stripWorkload(in any) (any, error) {
	if wl, ok := in.(*kueue.Workload); ok {
		wl.ManagedFields = nil
		c.options.Lean(c.worker, wl)
		c.options.shared.workload(wl)
	}
	return in, nil
}

// stripToName keeps of an object's metadata what it takes to see that the name is taken, and by whom.
func stripToName(in any) (any, error) {
	obj, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	kept := metav1.ObjectMeta{
		Name: obj.Name, Namespace: obj.Namespace, UID: obj.UID, ResourceVersion: obj.ResourceVersion,
		CreationTimestamp: obj.CreationTimestamp, DeletionTimestamp: obj.DeletionTimestamp,
	}
	if _, found := obj.Labels[kueue.MultiKueueOriginLabel]; found {
		// Few have one: these tell which job of which manager it may be.
		kept.Labels = only(obj.Labels, kueue.MultiKueueOriginLabel, kinds.PrebuiltWorkload)
		kept.Annotations = only(obj.Annotations, kueue.MultiKueueOriginUIDAnnotation, kinds.PrebuiltWorkload)
	}
	obj.ObjectMeta = kept
	return obj, nil
}

func only(from map[string]string, names ...string) map[string]string {
	kept := map[string]string{}
	for _, name := range names {
		if value, found := from[name]; found {
			kept[name] = value
		}
	}
	return kept
}

// onChange calls told for every object that is added, changed or deleted, but not for one that is merely read again.
func onChange(told func(client.Object)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { tell(told, obj) },
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(client.Object)
			a, okAfter := after.(client.Object)
			if okBefore && okAfter && b.GetResourceVersion() != a.GetResourceVersion() {
				told(a)
			}
		},
		DeleteFunc: func(obj any) { tell(told, obj) },
	}
}

// onNames calls told for every object that is created or deleted once the mirror is synced: what is there at the
// start is no news.
func onNames(told func(client.Object)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				tell(told, obj)
			}
		},
		DeleteFunc: func(obj any) { tell(told, obj) },
	}
}

func tell(told func(client.Object), obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if o, ok := obj.(client.Object); ok {
		told(o)
	}
}
