// Package pki makes the short-lived certificates of a playground.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// CA signs certificates.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // the CA's own certificate
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Cert, Key []byte }

// NewCA makes a certificate authority of the given name.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of CA %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign CA %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back CA %s: %w", name, err)
	}
	return &CA{cert: cert, key: key, PEM: certPEM(der)}, nil
}

// Serving makes a server certificate for loopback and the extra DNS names.
func (ca *CA) Serving(name string, dns ...string) (Pair, error) {
	return ca.sign(&x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		DNSNames: append([]string{"localhost"}, dns...), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client makes a client certificate that Kubernetes reads as the user and its groups.
func (ca *CA) Client(user string, groups ...string) (Pair, error) {
	return ca.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (ca *CA) sign(template *x509.Certificate) (Pair, error) {
	who := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", who, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("make the serial number of %s: %w", who, err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", who, err)
	}
	keyData, err := keyPEM(key)
	return Pair{Cert: certPEM(der), Key: keyData}, err
}

// NewKey makes a private key in PEM, e.g. to sign ServiceAccount tokens.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	return keyPEM(key)
}

// Write puts the pair into dir as <name>.crt and <name>.key.
func (p Pair) Write(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o644); err != nil {
		return fmt.Errorf("write certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("write the key of certificate %s: %w", name, err)
	}
	return nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
