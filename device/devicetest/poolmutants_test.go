package devicetest_test

var poolMutants = []broken{}
