package webhook

import batchv1 "k8s.io/api/batch/v1"

// builtin is, by kind, the managedBy value that names the kind's own controller.
// It says no more than an empty field does; some kinds have it set by default.
// Custom kinds are not here: for them, only the empty field is free.
var builtin = map[string]string{
	"Job.batch":                         batchv1.JobControllerName,
	"JobSet.jobset.x-k8s.io":            "jobset.sigs.k8s.io/jobset-controller",
	"TrainJob.trainer.kubeflow.org":     "trainer.kubeflow.org/trainjob-controller",
	"MPIJob.kubeflow.org":               "kubeflow.org/mpi-operator",
	"JAXJob.kubeflow.org":               "kubeflow.org/training-operator",
	"PaddleJob.kubeflow.org":            "kubeflow.org/training-operator",
	"PyTorchJob.kubeflow.org":           "kubeflow.org/training-operator",
	"TFJob.kubeflow.org":                "kubeflow.org/training-operator",
	"XGBoostJob.kubeflow.org":           "kubeflow.org/training-operator",
	"RayCluster.ray.io":                 "ray.io/kuberay-operator",
	"RayJob.ray.io":                     "ray.io/kuberay-operator",
	"RayService.ray.io":                 "ray.io/kuberay-operator",
	"AppWrapper.workload.codeflare.dev": "workload.codeflare.dev/appwrapper-controller",
}
