package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// errClosed is what every call through a connection gives once it is closed.
var errClosed = errors.New("the connection to this worker is closed")

// noAnswerError tells that a request was given up for want of an answer. It is no net.Error on purpose: client-go
// takes a watch that could not be established because of a timeout for one that ended, and tells nobody.
type noAnswerError struct {
	after time.Duration
	to    string // what was asked for; may be empty
}

func (e *noAnswerError) Error() string {
	text := fmt.Sprintf("no answer within %s", e.after)
	if e.to != "" {
		text += " while " + e.to
	}
	return text
}

// Is makes it a deadline that passed.
func (e *noAnswerError) Is(target error) bool { return target == context.DeadlineExceeded }

// describe turns an error of a connection into words for a human: which server, what failed, what to do. The same
// failure gives the same words each time, so that a condition is not written anew for each attempt.
func describe(cfg *rest.Config, err error) string {
	server := serverOf(cfg)
	var unknownAuthority x509.UnknownAuthorityError
	var badName x509.HostnameError
	var badCertificate *tls.CertificateVerificationError
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%s refused the credentials (401 Unauthorized): they are wrong or expired, renew the kubeconfig", server)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s denied access: %s; grant this permission to the kubeconfig's user on the worker", server, plain(err))
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s does not serve Kueue's v1beta2 API: install Kueue 0.19 or newer on the worker (%s)", server, plain(err))
	case errors.As(err, &unknownAuthority), errors.As(err, &badName), errors.As(err, &badCertificate):
		return fmt.Sprintf("The certificate of %s is not trusted: %s; check certificate-authority-data and server in the kubeconfig", server, plain(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s does not answer: %s; check that the API server is up and reachable from the manager", server, plain(err))
	}
	return fmt.Sprintf("Cannot talk to %s: %s; check that the API server is up and reachable from the manager", server, plain(err))
}

// serverOf names the API server without anything secret.
func serverOf(cfg *rest.Config) string {
	if cfg == nil {
		return "the API server"
	}
	u, err := url.Parse(cfg.Host)
	if err != nil || u.Host == "" {
		return cfg.Host
	}
	return u.Scheme + "://" + u.Host
}

// plain strips what differs between two attempts: URLs with parameters and the local port of a connection.
func plain(err error) string {
	var noAnswer *noAnswerError
	var operation *net.OpError
	var request *url.Error
	switch {
	case errors.As(err, &noAnswer):
		return noAnswer.Error()
	case errors.As(err, &operation):
		where := ""
		if operation.Addr != nil {
			where = " " + operation.Addr.String()
		}
		return fmt.Sprintf("%s %s%s: %v", operation.Op, operation.Net, where, operation.Err)
	case errors.As(err, &request):
		return request.Err.Error()
	}
	return err.Error()
}
