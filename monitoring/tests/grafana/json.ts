// A type as JSON writes it: the values of an enumeration are texts.
export type Json<T> = T extends string ? `${T}`
  : T extends (infer Item)[] ? Json<Item>[]
  : T extends object ? { [Key in keyof T]: Json<T[Key]> }
  : T;
