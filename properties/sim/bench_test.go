package sim

import "testing"

// BenchmarkPlay is one complete run: drawn, played, healed and judged.
func BenchmarkPlay(b *testing.B) {
	var cover Coverage
	player := NewPlayer(&cover)
	defer player.Close()
	for seed := uint64(0); b.Loop(); seed++ {
		if v := player.Play(Draw(Seeded(seed), "")); v != nil {
			b.Fatal(v)
		}
	}
	b.ReportMetric(float64(cover.Calls)/float64(cover.Runs), "calls/run")
	b.ReportMetric(float64(cover.Runs)/b.Elapsed().Seconds(), "runs/s")
}
