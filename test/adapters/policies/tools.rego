package tools

import rego.v1

default decision := {"allow": false, "reason": "only files of low risk are for guests"}

decision := {"allow": true} if {
	input.user == "ada"
	input.tool.riskLevel < 2
	"files" in input.tool.tags
}
