// Package audit decides the whole log again and says where it breaks a promise,
// and compares what the log says was done with what the CRM has.
package audit
