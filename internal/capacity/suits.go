package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// suits tells whether pods may run on a flavor's nodes, or why not. Only labels that the flavor has are looked at:
// what else a pod asks of its node, the flavor says nothing about.
func (w *Worker) suits(name kueue.ResourceFlavorReference, spec *corev1.PodSpec) (why string) {
	flavor := w.flavors[name]
	if flavor == nil {
		return fmt.Sprintf("there is no flavor %s", name)
	}
	for _, taint := range flavor.Spec.NodeTaints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(spec.Tolerations, taint) && !tolerates(flavor.Spec.Tolerations, taint) {
			return fmt.Sprintf("the pods do not tolerate the taint %s of flavor %s", taint.ToString(), name)
		}
	}
	asked := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: concerning(spec, flavor.Spec.NodeLabels)})
	matches, err := asked.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: flavor.Spec.NodeLabels}})
	switch {
	case err != nil:
		return fmt.Sprintf("the pods' node affinity cannot be used: %v", err)
	case !matches:
		return fmt.Sprintf("the pods' node selector or affinity excludes flavor %s", name)
	}
	return ""
}

// concerning is what pods ask of their nodes, as far as it is about these labels.
func concerning(spec *corev1.PodSpec, labels map[string]string) corev1.PodSpec {
	out := corev1.PodSpec{NodeSelector: map[string]string{}}
	for key, value := range spec.NodeSelector {
		if _, found := labels[key]; found {
			out.NodeSelector[key] = value
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return out
	}
	var terms []corev1.NodeSelectorTerm
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var about []corev1.NodeSelectorRequirement
		for _, asked := range term.MatchExpressions {
			if _, found := labels[asked.Key]; found {
				about = append(about, asked)
			}
		}
		if len(about) == 0 {
			return out // one of the alternatives asks for nothing that the flavor says something about
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: about})
	}
	if len(terms) > 0 {
		out.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	return out
}

func tolerates(all []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(all, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != taint.Effect, t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		}
		return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Key == taint.Key && t.Value == taint.Value
	})
}
