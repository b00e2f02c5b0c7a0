package reply_test

const doomedLog = "LEADONCE_TEST_DOOMED_LOG"
