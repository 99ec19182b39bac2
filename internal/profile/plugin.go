package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/pkg/apis/clientauthentication"
	"k8s.io/client-go/pkg/apis/clientauthentication/install"
	"k8s.io/client-go/rest"
)

// execInfo is the variable by which a plugin is told about the cluster, see
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
const execInfo = "KUBERNETES_EXEC_INFO"

// credential is what a plugin found.
type credential struct {
	token            string
	certificate, key []byte
	expires          time.Time // zero: it does not say
}

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme)
}()

// execute runs a plugin as kubectl does, without a terminal, until ctx ends.
func execute(ctx context.Context, config *rest.Config) (*credential, error) {
	plugin := config.ExecProvider
	version, err := schema.ParseGroupVersion(plugin.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("apiVersion of credential plugin %s: %w", plugin.Command, err)
	}
	info := &clientauthentication.ExecCredential{}
	if plugin.ProvideClusterInfo {
		if info.Spec.Cluster, err = rest.ConfigToExecCluster(config); err != nil {
			return nil, fmt.Errorf("tell credential plugin %s about the cluster: %w", plugin.Command, err)
		}
	}
	asked, err := runtime.Encode(codecs.LegacyCodec(version), info)
	if err != nil {
		return nil, fmt.Errorf("apiVersion of credential plugin %s: %w", plugin.Command, err)
	}
	command := exec.CommandContext(ctx, plugin.Command, plugin.Args...)
	command.WaitDelay = time.Second // what the plugin started may hold its output open
	command.Env = os.Environ()
	for _, v := range plugin.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	command.Env = append(command.Env, execInfo+"="+string(asked))
	var out bytes.Buffer
	command.Stdout = &out // and no more: what a plugin says besides may hold a secret, and would be in a condition
	if err := command.Run(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("it did not answer in time")
		}
		return nil, fmt.Errorf("credential plugin %s: %w; run it by hand in Ferry's container to see what it says", plugin.Command, err)
	}
	return read(out.Bytes(), plugin.Command)
}

// read never quotes what the plugin printed: it may hold the credential.
func read(out []byte, command string) (*credential, error) {
	answer := &clientauthentication.ExecCredential{}
	if err := runtime.DecodeInto(codecs.UniversalDecoder(clientauthentication.SchemeGroupVersion), out, answer); err != nil {
		return nil, fmt.Errorf("credential plugin %s printed no ExecCredential of client.authentication.k8s.io", command)
	}
	status := answer.Status
	if status == nil || status.Token == "" && (status.ClientCertificateData == "" || status.ClientKeyData == "") {
		return nil, fmt.Errorf("credential plugin %s printed an ExecCredential without a token or a client certificate with its key", command)
	}
	found := &credential{token: status.Token, certificate: []byte(status.ClientCertificateData), key: []byte(status.ClientKeyData)}
	if status.ExpirationTimestamp != nil {
		found.expires = status.ExpirationTimestamp.Time
	}
	return found, nil
}
