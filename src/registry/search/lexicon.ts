/**
 * The words of the field: what says nothing about a tool, what abbreviations stand for, and which
 * words people use for one another when they look for a tool.
 *
 * @module
 */

import { stem } from "./stem.ts";

const STOP_WORDS =
  "a about all am an and any are as be by can could do does for from had has have how i if in into is it its like me my need of on or our please so some that the their them there these they this those to tool use via was we what when where which who will with would you your";

/** Abbreviations with what they stand for, and groups of words that are used for one another. */
const WORDS =
  "pr=pull request|repo=repository|dir=directory|org=organization|config=configuration|db=database|doc=document|msg=message|env=environment|ls=list|rm=remove|whoami=current user profile|delete remove drop erase discard|create make new add open|list show get fetch view read|open read view|update edit change modify set|write save put|rename title|search find lookup query grep|comment reply answer|ci action workflow pipeline build job|directory folder|run execute trigger start|stop cancel abort|copy duplicate clone fork|issue ticket bug|user person account member|company organization|latest newest last recent|version release|notification inbox alert|subscription watch follow|vulnerability security|secret credential token password|terminal shell command|send post submit|error fail|emoji reaction|access permission|log history";

/** The lexicon, every word as its stem. */
export interface Lexicon {
  readonly stopWords: ReadonlySet<string>;
  readonly abbreviations: ReadonlyMap<string, readonly string[]>;
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
}

let lexicon: Lexicon | undefined;

/** Made on first use, so that who never searches pays nothing. */
export function theLexicon(): Lexicon {
  return lexicon ??= readLexicon();
}

function readLexicon(): Lexicon {
  const abbreviations = new Map<string, string[]>();
  const synonyms = new Map<string, string[]>();
  for (const line of WORDS.split("|")) {
    const [group = [], long] = line.split("=").map(stems);
    for (const word of group) {
      if (long !== undefined) abbreviations.set(word, long);
      else synonyms.set(word, [...new Set([...synonyms.get(word) ?? [], ...group])]);
    }
  }
  return { stopWords: new Set(stems(STOP_WORDS)), abbreviations, synonyms };
}

function stems(words: string): string[] {
  return words.split(" ").map(stem);
}
