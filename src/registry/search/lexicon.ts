/**
 * The words of the field: what says nothing about a tool, what abbreviations stand for, and which
 * words people use for one another when they look for a tool.
 *
 * @module
 */

import { stem } from "./stem.ts";

const STOP_WORDS =
  "a about all am an and any are as be by can could do does for from had has have how i if in into is it its like me my need of on or our please so some that the their them there these they this those to tool use via was we what when where which who will with would you your";

const ABBREVIATIONS =
  "pr=pull request|repo=repository|dir=directory|org=organization|config=configuration|db=database|doc=document|info=information|msg=message|env=environment|ls=list|rm=remove|mkdir=create directory|whoami=me";

const SYNONYMS =
  "delete remove drop erase discard|create make new add open|list show get fetch view read retrieve|update edit change modify set|write save put create update|rename title|search find lookup query grep|comment reply answer|merge combine squash|ci action workflow pipeline build job|history log|directory folder|run execute trigger start launch call|rerun retry|stop cancel abort kill|move rename|copy duplicate clone fork|push upload|download fetch|issue ticket bug|user person account member|company organization|assign delegate|label tag|latest newest last recent current|version release|close resolve done|dismiss ignore mute clear|notification inbox alert|subscription watch follow unsubscribe|vulnerability security cve|secret credential token password|discussion conversation thread forum|board project|terminal shell command|send post submit|web url http|error failure fail bug|child sub|emoji reaction|star favorite|access permission|me myself profile|description body content text";

/** The lexicon, every word as its stem. */
export interface Lexicon {
  readonly stopWords: ReadonlySet<string>;
  readonly abbreviations: ReadonlyMap<string, readonly string[]>;
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
}

let lexicon: Lexicon | undefined;

/** Made on first use, so that who never searches pays nothing. */
export function theLexicon(): Lexicon {
  return lexicon ??= {
    stopWords: new Set(stems(STOP_WORDS)),
    abbreviations: new Map(
      ABBREVIATIONS.split("|").map((entry) => {
        const [short = "", long = ""] = entry.split("=");
        return [stem(short), stems(long)];
      }),
    ),
    synonyms: readSynonyms(),
  };
}

function readSynonyms(): Map<string, string[]> {
  const synonyms = new Map<string, string[]>();
  for (const group of SYNONYMS.split("|").map(stems)) {
    for (const word of group) {
      synonyms.set(word, [...synonyms.get(word) ?? [], ...group.filter((other) => other !== word)]);
    }
  }
  return synonyms;
}

function stems(words: string): string[] {
  return words.split(" ").map(stem);
}
