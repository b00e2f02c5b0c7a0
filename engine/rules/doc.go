// Package rules says which updates ask for a lead, and with which fields: a list of
// rules that its owner writes, and behind it the defaults, job.DefaultPlan.
//
// The first rule whose condition holds decides. Where none does, the defaults do:
// a message in a private chat that has something to say is a lead.
//
// Replies to people are texts with expressions over the same names.
//
// What holds, whatever the rules are and whatever arrives:
//
//	R1  A plan is a function of the update alone, and of the id that its chat had
//	    first. Expressions have no clock, no random number, no environment, and no
//	    order that differs between two runs.
//	R2  A plan costs at most so much: expressions have no loops in loops, no
//	    variables, and no function whose result is larger than what it was given.
//	R3  An expression that cannot be evaluated makes the job a dead letter that
//	    names the rule. It never repeats what a person wrote.
//	R4  An edit asks for no lead. It may come for metadata only.
//	R5  A business key of a rule is telegram/<bot>/rule/<rule>/<quoted key>: it is
//	    no other rule's, no other bot's and no update's event key.
//	    A series has no key here: the engine records who opened it.
//	R6  What is missing in an update is nil, and nil in a text is nothing.
package rules
