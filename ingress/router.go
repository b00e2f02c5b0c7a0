package ingress

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/go-chi/chi/v5"
)

// Config is what a Router serves. A part that is nil is not served: its path is
// answered 404.
type Config struct {
	Telegram http.Handler // /telegram/{bot}
	Metrics  http.Handler // GET /metrics
	Checks   []Check      // of GET /readyz
	Logger   *slog.Logger // default: none

	// NoTelegram is what deliveries are told where Telegram is nil.
	// Default: that they go to another process.
	NoTelegram string

	// About is what GET /readyz tells beside its checks, by topic.
	About map[string]string
}

// Router routes to the configured parts and to GET /healthz and GET /readyz. It
// never redirects.
func Router(c Config) http.Handler {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := chi.NewRouter()
	r.Use(recovering(c.Logger))
	r.NotFound(notFound(c.Logger))
	r.Get("/healthz", healthy)
	r.Method(http.MethodGet, "/readyz", readiness(c.Checks, c.About))
	if c.Telegram != nil {
		r.Handle("/telegram/{bot}", c.Telegram)
	} else {
		r.Handle("/telegram/*", noIntake(c.NoTelegram))
	}
	if c.Metrics != nil {
		r.Method(http.MethodGet, "/metrics", c.Metrics)
	}
	return r
}

// noIntake is what deliveries find at a process that takes none.
func noIntake(text string) http.HandlerFunc {
	if text == "" {
		text = "this process takes no deliveries: send them to one with the role ingress or all"
	}
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusNotFound) }
}

// notFound logs only how long an unknown path is. People put tokens and secrets
// into webhook paths.
func notFound(log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		log.LogAttrs(r.Context(), slog.LevelDebug, "no such path", slog.Int("path_bytes", len(r.URL.Path)))
		http.Error(w, "no such path: deliveries go to /telegram/<bot id>", http.StatusNotFound)
	}
}

// recovering answers 503 for a handler that panics, so that a delivery comes
// again, and logs the stack. Of a panic's value it logs only what the runtime
// itself says, since any other may quote the request.
func recovering(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				value := recover()
				if value == nil {
					return
				}
				if value == http.ErrAbortHandler {
					panic(value) // net/http's own way to cut a connection
				}
				what := fmt.Sprintf("a %T", value)
				if err, ok := value.(runtime.Error); ok {
					what = err.Error()
				}
				log.LogAttrs(r.Context(), slog.LevelError, "panic in a handler",
					slog.String("panic", what), slog.String("stack", string(debug.Stack())))
				w.Header().Set("Retry-After", "5")
				http.Error(w, "failed: send it again later", http.StatusServiceUnavailable)
			}()
			next.ServeHTTP(w, r)
		})
	}
}
