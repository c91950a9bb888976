// Command bare does nothing: what any Go program weighs.
package main

import "github.com/holdfast-dev/holdfast/bench/cost/stay"

func main() { stay.Alive() }
