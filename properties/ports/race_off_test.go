//go:build !race

package ports

// raceDetector makes SQLite some twenty times slower.
const raceDetector = false
