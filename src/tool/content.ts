/**
 * Results that are not one value: images, audio, files and texts, block by block, in the words of
 * MCP. Each provider gets them in its own shape.
 *
 * @module
 */

/** A text for the model. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

/** An image or a recording. */
export interface MediaBlock {
  readonly type: "image" | "audio";
  /** The bytes in base64, without a `data:` in front. */
  readonly data: string;
  /** Such as `image/png`. */
  readonly mimeType: string;
}

/** A file, with what is in it. */
export interface ResourceBlock {
  readonly type: "resource";
  readonly resource:
    & {
      readonly uri: string;
      readonly mimeType?: string | undefined;
    }
    & ({ readonly text: string } | {
      /** The bytes in base64. */
      readonly blob: string;
    });
}

/** A link. The model gets its address, and nothing is fetched. */
export interface ResourceLinkBlock {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** One part of a result. MCP clients also get members that are not named here. */
export type ContentBlock = TextBlock | MediaBlock | ResourceBlock | ResourceLinkBlock;

/** What a result of blocks has besides them. */
export interface ContentOptions {
  /**
   * The same as a value. The `returns` schema of the tool is about it; programs and the output of
   * typed targets get it.
   */
  readonly structuredContent?: unknown;
  /** For the application, such as an id or a path. No model gets it. JSON. */
  readonly metadata?: { readonly [key: string]: unknown };
}

/** The content of a result of blocks. It is JSON. */
export interface ToolContent extends ContentOptions {
  readonly content: readonly ContentBlock[];
}
