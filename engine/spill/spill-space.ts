/** Room on a disk for partitions that memory does not hold. */
export interface SpillSpace {
  /** The path of a file that does not exist yet; the folder is made with the first. Throws UsageError for a folder that cannot be written to. */
  newFile(): Promise<string>;
}
