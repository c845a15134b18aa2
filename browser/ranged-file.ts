/** A file that is read by ranges of bytes. */
export interface RangedFile {
  readonly url: string;
  readonly byteLength: number;
  /** `signal`: cancels the request. */
  slice(start: number, end?: number, signal?: AbortSignal): Promise<ArrayBuffer>;
}
