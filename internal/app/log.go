package app

import (
	"os"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// NewLog makes the one log of the process, and sends there what libraries log.
func NewLog(text bool, verbosity int) logr.Logger {
	encoding := zap.JSONEncoder()
	if text {
		encoding = zap.ConsoleEncoder()
	}
	log := zap.New(encoding, zap.WriteTo(os.Stderr), zap.Level(zapcore.Level(-verbosity)), zap.RawZapOpts())
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return log
}
