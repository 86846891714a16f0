-- What tcpwhy says of each packet, as fields, colours and expert information.
--
-- `tcpwhy slow.pcapng --annotate notes.pcapng` writes the same packets with comments; this reads them in notes.pcapng. Their first
-- line is strict: "tcpwhy:" and pairs of key and value, the name of the exchange last, since it may hold spaces. Lines "evidence
-- of CAUSE (SPAN): WHY" follow on packets that prove something. Comments of others are left alone.

set_plugin_info({
    version = "@VERSION@",
    description = "Why this time passed: reads what tcpwhy --annotate writes",
    repository = "https://github.com/tcpwhy/tcpwhy",
})

-- Where several of Wireshark's folders hold it, or -X names it besides, the first one counts.
if _G.tcpwhy_is_loaded then
    return
end
_G.tcpwhy_is_loaded = true

-- By cause: who has to act, and a few words. From the table of `tcpwhy causes`.
local CAUSES = {
    -- @CAUSES@
}

local tcpwhy = Proto("tcpwhy", "tcpwhy")
local fields = {
    cause = ProtoField.string("tcpwhy.cause", "Cause"),
    title = ProtoField.string("tcpwhy.title", "That is"),
    owner = ProtoField.string("tcpwhy.owner", "Who has to act"),
    ms = ProtoField.double("tcpwhy.ms", "Time [ms]"),
    side = ProtoField.string("tcpwhy.side", "Side"),
    connection = ProtoField.uint32("tcpwhy.connection", "Connection"),
    exchange = ProtoField.uint32("tcpwhy.exchange", "Exchange"),
    part = ProtoField.string("tcpwhy.part", "Part"),
    span = ProtoField.string("tcpwhy.span", "Span"),
    finding = ProtoField.string("tcpwhy.finding", "Finding"),
    name = ProtoField.string("tcpwhy.name", "Name of the exchange"),
    evidence = ProtoField.string("tcpwhy.evidence", "Evidence of"),
    why = ProtoField.string("tcpwhy.why", "Why"),
}
local list = {}
for _, field in pairs(fields) do
    list[#list + 1] = field
end
tcpwhy.fields = list
local avoidable = ProtoExpert.new(
    "tcpwhy.avoidable", "Evidence of time that could be saved", expert.group.SEQUENCE, expert.severity.WARN
)
tcpwhy.experts = { avoidable }

local comments = Field.new("frame.comment")
-- As they stand in the line and in the tree.
local ORDER = { "cause", "ms", "side", "connection", "exchange", "part", "span", "finding", "name" }
local NUMBERS = { ms = true, connection = true, exchange = true }

-- The pairs of a first line.
local function pairs_of(line)
    local found = {}
    local before, name = line:match("^(.-) name=(.*)$")
    found.name = name
    for key, value in (before or line):gmatch("(%l+)=(%S+)") do
        found[key] = NUMBERS[key] and tonumber(value) or value
    end
    return found
end

-- Shows one comment below `tree`.
local function show(text, tree)
    local first, rest = text:match("^tcpwhy: ([^\n]*)\n?(.*)$")
    if not first or not first:find("cause=", 1, true) then
        return
    end
    local found = pairs_of(first)
    local known = CAUSES[found.cause]
    local label = string.format("tcpwhy: %s, %s ms", found.cause, found.ms or "?")
    local item = tree:add(tcpwhy, label)
    for _, key in ipairs(ORDER) do
        if found[key] ~= nil then
            item:add(fields[key], found[key]):set_generated()
        end
    end
    if known then
        item:add(fields.title, known[2]):set_generated()
        item:add(fields.owner, known[1]):set_generated()
    end
    for cause, why in rest:gmatch("evidence of (%l[%l_]*) %([^)]*%): ([^\n]*)") do
        local shown = item:add(fields.evidence, cause)
        shown:set_generated()
        item:add(fields.why, why):set_generated()
        if CAUSES[cause] and CAUSES[cause][1] == "tcp" then
            shown:add_proto_expert_info(avoidable, CAUSES[cause][2])
        end
    end
end

function tcpwhy.dissector(_, _, tree)
    for _, comment in ipairs({ comments() }) do
        show(tostring(comment.value), tree)
    end
end

-- All fields are wanted: a filter or a colour may ask for any of them.
register_postdissector(tcpwhy, true)

-- Tools > tcpwhy: explains a capture and opens the copy with comments.
if gui_enabled() then
    local function quoted(word)
        if package.config:sub(1, 1) == "\\" then
            return '"' .. word:gsub('"', "") .. '"'
        end
        return "'" .. word:gsub("'", "'\\''") .. "'"
    end
    local function explain(path)
        local name = os.tmpname()
        -- the name is made with an empty file
        os.remove(name)
        local copy = name .. ".pcapng"
        local command = "@PROGRAM@ explain " .. quoted(path) .. " --annotate " .. quoted(copy) .. " 2>&1"
        local pipe = io.popen(command)
        local said = pipe and pipe:read("*a") or "tcpwhy could not be started"
        if pipe then
            pipe:close()
        end
        local window = TextWindow.new("tcpwhy " .. path)
        window:set(said)
        local written = io.open(copy, "rb")
        if written then
            written:close()
            open_capture_file(copy, "")
        end
    end
    register_menu("tcpwhy/Explain a capture", function()
        new_dialog("tcpwhy: explain a capture", explain, "File")
    end, MENU_TOOLS_UNSORTED)
end
