package job

import "testing"

func FuzzParseUpdate(f *testing.F) {
	for _, u := range sampleUpdates(f) {
		f.Add(u.Raw)
	}
	for _, seed := range []string{
		``, `{}`, `{"update_id":1}`, `{"update_id":-9223372036854775808,"x":[1.50e+2,-0,true,null,{}]}`,
		`{"update\u005fid":1,"message":{"text":"\ud83d\ude00\ud83d\u0000\/<&>"}}`, `{"update_id":1,"a":1,"a":2,"message":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkParse(t, raw) })
}
