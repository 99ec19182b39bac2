// Package check stub.
package check

import ctrl "sigs.k8s.io/controller-runtime"

func Setup(mgr ctrl.Manager) error { return nil }
