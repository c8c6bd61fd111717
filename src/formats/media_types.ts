/**
 * The media types of files in results, each with its usual file extension, by which some targets name
 * it.
 *
 * @module
 */

const OFFICE = "application/vnd.openxmlformats-officedocument";

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["application/msword", "doc"],
  ["application/pdf", "pdf"],
  ["application/rtf", "rtf"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.ms-powerpoint", "ppt"],
  ["application/vnd.oasis.opendocument.text", "odt"],
  [`${OFFICE}.presentationml.presentation`, "pptx"],
  [`${OFFICE}.spreadsheetml.sheet`, "xlsx"],
  [`${OFFICE}.wordprocessingml.document`, "docx"],
  ["image/gif", "gif"],
  ["image/jpeg", "jpeg"],
  ["image/png", "png"],
  ["image/webp", "webp"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
  ["text/xml", "xml"],
  ["video/3gpp", "three_gp"],
  ["video/mp4", "mp4"],
  ["video/mpeg", "mpeg"],
  ["video/quicktime", "mov"],
  ["video/webm", "webm"],
  ["video/x-flv", "flv"],
  ["video/x-matroska", "mkv"],
  ["video/x-ms-wmv", "wmv"],
]);

/** The extension of a media type, if it is one of these. */
export function extensionIn<Extension extends string>(
  extensions: readonly Extension[],
  mimeType: string,
): Extension | undefined {
  const extension = EXTENSIONS.get(mimeType);
  return extensions.find((one) => one === extension);
}
