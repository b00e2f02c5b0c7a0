package main

func (c *config) checkLog() error { return c.sources.place(c.verifyLog()) }

func (c *config) verifyLog() error {
	switch {
	case c.Log != logSQLite && c.Log != logMemory && c.Log != logKurrentDB:
		return wrong("log", "%q is unknown, give %s, %s or %s", c.Log, logSQLite, logMemory, logKurrentDB)
	case c.Log == logMemory && c.Role != roleAll:
		return wrong("log", "memory can be seen by its own process only; give it the role %s, or another log", roleAll)
	}
	if c.Log == logKurrentDB {
		k, err := c.cluster()
		if err == nil {
			err = checkKurrentDB(k)
		}
		if err != nil {
			return err
		}
	}
	if c.DataDir == "" {
		return wrong("data_dir", "empty, give a folder")
	}
	return nil
}

// The logs that a configuration can name.
const (
	logSQLite    = "sqlite"
	logMemory    = "memory"
	logKurrentDB = "kurrentdb"
)

// cluster is where KurrentDB is, with the environment's values. They may hold a
// password: no error quotes them.
func (c *config) cluster() (kurrentConfig, error) {
	k := c.KurrentDB
	if k.Connection == "" {
		return k, wrong("kurrentdb.connection", "none; give the cluster's address, such as esdb://user:${KURRENTDB_PASSWORD}@host:2113?tls=true")
	}
	var err error
	k.Connection, err = expand("kurrentdb.connection", k.Connection)
	return k, err
}
