package fleet

import "k8s.io/client-go/rest"

// ParseKubeConfig is not built yet.
func ParseKubeConfig(data []byte, allowInsecure bool) (cfg *rest.Config, fingerprint, reason string, err error) {
	return nil, "", "", nil
}
