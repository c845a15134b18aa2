/** Types of text columns; numbers from narrow to wide. */
export const textTypes = ['int32', 'int64', 'float32', 'float64', 'utf8', 'bool'] as const;
export type TextType = (typeof textTypes)[number];
