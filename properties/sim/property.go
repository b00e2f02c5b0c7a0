package sim

// Property names a promise. The catalogue in properties/PROPERTIES.md says what
// each of them demands.
type Property string

// Safety: judged after every call.
const (
	AtMostOneEffect     Property = "at-most-one-effect"
	StoredBefore2xx     Property = "stored-before-2xx"
	StoredIsAnswered    Property = "stored-is-answered-2xx"
	NothingDiscarded    Property = "nothing-discarded"
	AcceptedOnce        Property = "accepted-once"
	OnlyUnderClaim      Property = "only-under-claim"
	StepsInOrder        Property = "steps-in-order"
	NoBlindRepeat       Property = "no-blind-repeat"
	OperationIDStable   Property = "operation-id-stable"
	FinalStays          Property = "final-stays"
	NoHiddenEffect      Property = "no-hidden-effect"
	ReceiptsKept        Property = "receipts-kept"
	SecondIDIsIncident  Property = "second-id-is-incident"
	ByTheTable          Property = "by-the-table"
	OnlyIfAmbiguous     Property = "reconciled-only-if-ambiguous"
	CRMIsSpared         Property = "crm-is-spared"
	SnapshotsHold       Property = "snapshots-hold"
	ProofIsProof        Property = "proof-is-proof"
	AbsenceIsProven     Property = "absence-is-proven"
	OneHolder           Property = "one-holder"
	ContentIsTheUpdates Property = "content-is-the-updates"
	NoPanic             Property = "no-panic"
)

// Liveness and replay: judged when the world is healed and quiet.
const (
	Ends             Property = "ends"
	DoneIfAnswered   Property = "done-if-answered"
	VerdictIsRight   Property = "verdict-is-right"
	FoldIsTheState   Property = "fold-is-the-state"
	ReplayIsIdle     Property = "replay-changes-nothing"
	AgendaIsComplete Property = "agenda-is-complete"
)

// Properties lists those of every run. Beside them, OutsideProperties judges parts
// from outside.
var Properties = []Property{
	AtMostOneEffect, StoredBefore2xx, StoredIsAnswered, NothingDiscarded, AcceptedOnce, OnlyUnderClaim, StepsInOrder,
	NoBlindRepeat, OperationIDStable, FinalStays, NoHiddenEffect, ReceiptsKept, SecondIDIsIncident, ByTheTable,
	OnlyIfAmbiguous, CRMIsSpared, SnapshotsHold, ProofIsProof, AbsenceIsProven, OneHolder, ContentIsTheUpdates, NoPanic, Ends, DoneIfAnswered, VerdictIsRight, FoldIsTheState,
	ReplayIsIdle, AgendaIsComplete,
}

// What a log or a connector from outside may break beside the others. Those of a
// connector are the rules C1, C2, C3 and C5 of package crm, which the conformance
// suite is about as well.
const (
	LogKeepsOrder   Property = "log-keeps-order"
	OneRequest      Property = "one-request"
	InTime          Property = "in-time"
	OnlyOnProof     Property = "only-on-proof"
	FindsExactly    Property = "finds-exactly"
	SandboxAnswers  Property = "sandbox-answers"
	ClassIsDeclared Property = "class-is-declared"
)

// OutsideProperties lists them.
var OutsideProperties = []Property{
	LogKeepsOrder, OneRequest, InTime, OnlyOnProof, FindsExactly, SandboxAnswers, ClassIsDeclared,
}
