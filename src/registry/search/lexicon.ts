/**
 * The words of the field: what is too common to mean anything, what abbreviations stand for, and
 * which words people use for one another when they look for a tool.
 *
 * @module
 */

import { stem } from "./stem.ts";

/** Words that say little. They count only where they are part of a name. */
const STOP =
  "a an the of for to in on at by with from and or is are was be been it its this that these those there i my we our you your he she they what which who how when where why do does did can could should would will has have had want need please some any if so as into about me us use using used give tell let like just also than then via per etc tool tools";

/** An abbreviation and the words that it stands for, in tools and in queries alike. */
const ABBREVIATIONS =
  "pr=pull request|mr=merge request|repo=repository|dir=directory|org=organization|organisation=organization|config=configuration|conf=configuration|db=database|doc=document|docs=document|documentation=document|info=information|msg=message|cmd=command|env=environment|img=image|pic=image|ls=list|rm=remove|del=delete|mkdir=create directory|cp=copy|mv=move|auth=authentication|dep=dependency|deps=dependency|desc=description|param=parameter|arg=argument|args=argument|exec=execute|diff=difference|whoami=me";

/** Words that are used for one another when a tool is looked for. */
const SYNONYMS =
  "delete remove drop erase destroy discard unset|create make new add open insert start|list show get fetch view read retrieve display see print browse|update edit change modify set alter adjust|write save store put create update|rename title|search find lookup query grep locate|comment reply answer respond note|merge combine join squash|workflow ci action pipeline build job|log output trace|directory folder path|run execute trigger start launch invoke call perform|rerun retry restart|stop cancel abort kill terminate|move rename transfer|copy duplicate clone fork|push upload publish|download fetch pull|issue ticket bug|user person people account member developer|organization company|team group|assign delegate|reviewer approver|label tag|latest newest last recent current|release version|commit change revision|branch ref|history log|close resolve finish complete done|dismiss ignore mute clear|notification inbox alert message|notification subscribe watch follow|vulnerability security advisory cve|secret credential token password|discussion forum conversation thread|conversation comment|conversation chat message|thread topic|project board kanban|file document|snippet gist|terminal shell command console bash|send post submit|image picture photo|web url http internet page site|error failure fail bug problem|status state|calendar schedule event meeting|email mail|database sql table|weather forecast|child sub|parent owner|emoji reaction react|star favorite bookmark|permission access collaborator|me myself profile|all every|body description content text";

/** The lexicon, with every word as its stem. */
export interface Lexicon {
  readonly stop: ReadonlySet<string>;
  /** From a word, not its stem, to the stems that it stands for. */
  readonly abbreviations: ReadonlyMap<string, readonly string[]>;
  readonly synonyms: ReadonlyMap<string, ReadonlySet<string>>;
}

let lexicon: Lexicon | undefined;

/** Made on first use, so that who never searches pays nothing. */
export function theLexicon(): Lexicon {
  return lexicon ??= {
    stop: new Set(STOP.split(" ").map(stem)),
    abbreviations: new Map(
      ABBREVIATIONS.split("|").map((entry) => {
        const [short = "", long = ""] = entry.split("=");
        return [short, long.split(" ").map(stem)];
      }),
    ),
    synonyms: readSynonyms(),
  };
}

function readSynonyms(): Map<string, Set<string>> {
  const synonyms = new Map<string, Set<string>>();
  for (const line of SYNONYMS.split("|")) {
    const group = line.split(" ").map(stem);
    for (const word of group) {
      const others = synonyms.get(word) ?? new Set();
      for (const other of group) if (other !== word) others.add(other);
      synonyms.set(word, others);
    }
  }
  return synonyms;
}
