;;; emacs_tests.el --- What the package does without a server -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs --batch -l emacs_tests.el -f ert-run-tests-batch-and-exit

;;; Code:

(require 'ert)
(require 'midfill)

(defmacro midfill-test-in (text &rest body)
  "Run BODY in a buffer with TEXT, point at its |."
  (declare (indent 1))
  `(with-temp-buffer
     (insert ,text)
     (goto-char (point-min))
     (search-forward "|")
     (delete-char -1)
     ,@body))

(defun midfill-test-item (text &optional line start stop)
  "An item with TEXT in place of START to STOP on LINE."
  `(:insertText ,text
    ,@(and line `(:range (:start (:line ,line :character ,start) :end (:line ,line :character ,stop))))))

(defun midfill-test-view (text &optional line start stop encoding)
  "The candidate with TEXT for LINE, START, STOP in ENCODING, and its view."
  (let ((candidate (midfill-edit-candidate (midfill-test-item text line start stop) (or encoding "utf-16"))))
    (cons candidate (and candidate (midfill-edit-view candidate)))))

(defun midfill-test-accept (kind text &optional line start stop)
  "The buffer after accepting KIND of an item with TEXT, LINE, START and STOP."
  (pcase-let ((`(,candidate . ,view) (midfill-test-view text line start stop)))
    (midfill-edit-insert candidate view (midfill-edit-part (midfill-view-ghost view) kind))
    (insert "|")
    (prog1 (buffer-string)
      (delete-char -1))))

(ert-deftest midfill-test-columns ()
  "Columns are units of what was agreed on."
  (midfill-test-in "x\nnaïve = '😎é𠀀'; x = |"
    (dolist (each '(("utf-32" . 19) ("utf-16" . 21) ("utf-8" . 27)))
      (pcase-let ((`(,encoding . ,column) each))
        (should (equal (midfill-edit-position encoding) (list :line 1 :character column)))
        (should (midfill-view-p (cdr (midfill-test-view "1" 1 column column encoding))))
        (should-not (midfill-view-p (cdr (midfill-test-view "1" 1 (1- column) (1- column) encoding))))))))

(ert-deftest midfill-test-no-place ()
  "An item for another line, or that does not reach point, is none."
  (midfill-test-in "ab\ncd|e"
    (should-not (car (midfill-test-view "x" 0 2 2)))
    (should-not (car (midfill-test-view "x" 1 0 1)))
    (should-not (car (midfill-test-view "x" 1 3 3)))
    (should-not (car (midfill-edit-candidate '(:insertText nil) "utf-16")))
    (should (car (midfill-test-view "x" 1 2 2)))
    (should (car (midfill-test-view "x" 1 0 3)))
    (should (equal (midfill-candidate-text (midfill-edit-candidate '(:insertText (:value "x")) "utf-16")) "x"))))

(ert-deftest midfill-test-typed-through ()
  "What is typed as suggested is taken off; anything else ends it."
  (midfill-test-in "x = |"
    (pcase-let ((`(,candidate . ,_) (midfill-test-view "abc(d)" 0 4 4)))
      (insert "ab")
      (should (equal (midfill-view-ghost (midfill-edit-view candidate)) "c(d)"))
      (should-not (midfill-edit-typed-p candidate))
      (insert "c()") ; as one that closes brackets does
      (backward-char)
      (should (equal (midfill-view-ghost (midfill-edit-view candidate)) "d)"))
      (insert "x")
      (should-not (midfill-edit-view candidate))
      (delete-char -1)
      (insert "d)")
      (delete-char 1)
      (should-not (midfill-edit-view candidate))
      (should (midfill-edit-typed-p candidate))
      (forward-line -1)
      (insert "\n")
      (should-not (midfill-edit-view candidate)))))

(ert-deftest midfill-test-lines-above ()
  "What is inserted above, by somebody else, moves the suggestion along."
  (midfill-test-in "x\ny = |"
    (pcase-let ((`(,candidate . ,_) (midfill-test-view "1" 1 4 4)))
      (save-excursion (goto-char (point-min)) (insert "a\nb\n"))
      (should (equal (midfill-view-ghost (midfill-edit-view candidate)) "1")))))

(ert-deftest midfill-test-out-of-date ()
  "A key that is pressed after something else has changed the text does what it did."
  (midfill-test-in "x = |"
    (pcase-let ((`(,candidate . ,_) (midfill-test-view "abc" 0 4 4))
                (emulation-mode-map-alists (list midfill--key-maps)))
      (switch-to-buffer (current-buffer))
      (use-local-map (make-sparse-keymap))
      (local-set-key "\t" #'newline)
      (setq midfill--shown (make-midfill--shown :candidates (list candidate)))
      (save-excursion (goto-char (point-min)) (insert "y"))
      (execute-kbd-macro "\t")
      (should (equal (buffer-string) "yx =\n")) ; as `electric-indent-mode' has it
      (should-not midfill--shown))))

(ert-deftest midfill-test-narrowed ()
  "What does not lie within a narrowed buffer cannot be replaced."
  (midfill-test-in "foo(|ab)"
    (pcase-let ((`(,candidate . ,_) (midfill-test-view "xyz)" 0 4 7)))
      (narrow-to-region 2 6)
      (should-not (midfill-edit-view candidate))
      (widen)
      (should (midfill-edit-view candidate))
      (narrow-to-region 2 8)
      (should (midfill-edit-view candidate)))))

(ert-deftest midfill-test-brackets ()
  "What stands behind point stays where the text has it."
  (midfill-test-in "foo(|)"
    (should (equal (midfill-test-accept 'word "a, b)" 0 4 5) "foo(a|)")))
  (midfill-test-in "foo(|)"
    (should (equal (midfill-test-accept 'all "a, b)" 0 4 5) "foo(a, b)|")))
  (midfill-test-in "foo(|)"
    (should (equal (midfill-test-accept 'all "a).b()" 0 4 5) "foo(a).b()|")))
  (midfill-test-in "foo(|) # x"
    (should (equal (midfill-test-accept 'line "a,\n    b)" 0 4 5) "foo(a,|) # x"))))

(ert-deftest midfill-test-before-point ()
  "A suggestion that begins before point takes the place of what is there."
  (midfill-test-in "        |"
    (should (equal (midfill-test-accept 'all "    else:\n        b" 0 0 8) "    else:\n        b|")))
  (midfill-test-in "        |"
    (should (equal (midfill-test-accept 'word "    else:\n        b" 0 0 8) "    else|"))))

(ert-deftest midfill-test-parts ()
  "Words and lines; white space goes with what follows it."
  (pcase-dolist (`(,ghost ,word ,line)
                 '(("a_b1 + c" "a_b1" "a_b1 + c")
                   (" + c\nd" " +" " + c")
                   ("()\n" "()" "()")
                   ("\n    x = 1\ny" "\n    x" "\n    x = 1")
                   ("größe! 😎" "größe" "größe! 😎")
                   ("  " "  " "  ")))
    (midfill-test-in "|"
      (should (equal (substring ghost 0 (midfill-edit-part ghost 'word)) word))
      (should (equal (substring ghost 0 (midfill-edit-part ghost 'line)) line)))))

(ert-deftest midfill-test-lines-one-by-one ()
  "What is left belongs to the last line; accepted is counted from the beginning."
  (midfill-test-in "x = |"
    (pcase-let ((`(,candidate . ,view) (midfill-test-view "😎\n  b\n  c" 0 4 4)))
      (midfill-edit-insert candidate view (midfill-edit-part (midfill-view-ghost view) 'line))
      (setq view (midfill-edit-view candidate))
      (should (equal (midfill-view-ghost view) "\n  b\n  c"))
      (should-not (midfill-edit-insert candidate view (midfill-edit-part (midfill-view-ghost view) 'line)))
      (setq view (midfill-edit-view candidate))
      (should (equal (midfill-view-ghost view) "\n  c"))
      (should (= (midfill-candidate-base candidate) 2))
      (should (midfill-edit-insert candidate view (length (midfill-view-ghost view))))
      (should (equal (buffer-string) "x = 😎\n  b\n  c")))))

(ert-deftest midfill-test-a-directory-sets-nothing ()
  "Neither a file nor a directory can name a command or settings."
  (dolist (name '(midfill-server-command midfill-settings))
    (should (risky-local-variable-p name))
    (should-not (safe-local-variable-p name '("sh"))))
  (with-temp-buffer
    (let ((midfill-server-command '("right")) (midfill-settings '((backend . "right"))))
      (with-temp-buffer
        (setq-local midfill-server-command '("wrong") midfill-settings '((backend . "wrong")))
        (should-not (equal (midfill-server-find-command) '("wrong")))
        (should-not (equal (midfill-server-json-settings) '((backend . "wrong"))))))))

(ert-deftest midfill-test-where ()
  "Only files of this machine."
  (with-temp-buffer
    (should-not (midfill-server-wanted-p))
    (setq buffer-file-name "/ssh:somewhere:/x.py")
    (should-not (midfill-server-wanted-p))
    (setq buffer-file-name "/x.py")
    (should (midfill-server-wanted-p))
    (setq buffer-file-name nil)))

(ert-deftest midfill-test-inhibited ()
  "Nothing is shown where it would be in the way."
  (with-temp-buffer
    (should-not (midfill--inhibited-p))
    (dolist (name '(buffer-read-only isearch-mode completion-in-region-mode company-candidates
                    executing-kbd-macro defining-kbd-macro))
      (cl-progv (list name) '(t)
        (should (midfill--inhibited-p))))
    (let ((evil-local-mode t) (evil-state 'normal))
      (defvar evil-local-mode)
      (defvar evil-state)
      (cl-progv '(evil-local-mode evil-state) '(t normal)
        (should (midfill--inhibited-p)))
      (cl-progv '(evil-local-mode evil-state) '(t insert)
        (should-not (midfill--inhibited-p))))
    (insert "abc")
    (let ((transient-mark-mode t))
      (set-mark 1)
      (activate-mark)
      (should (midfill--inhibited-p)))))

(ert-deftest midfill-test-status ()
  "What the mode line says, and why."
  (let (midfill-server-own midfill-server-problem midfill-server-busy midfill--off)
    (cl-flet ((says (text why)
                (should (equal (substring-no-properties (midfill-mode-line)) text))
                (should (equal (get-text-property 1 'help-echo (midfill-mode-line)) why)))
              (progress (kind) (midfill-server--notified nil '$/progress
                                                         `(:value (:kind ,kind :title "midfill: loading x")))))
      (says " midfill-" "midfill: stopped")
      (midfill-server--notified nil 'window/showMessage '(:type 3 :message "midfill: well"))
      (says " midfill-" "midfill: stopped")
      (midfill-server--notified nil 'window/showMessage '(:type 2 :message "midfill: no key"))
      (says " midfill!" "midfill: error, midfill: no key")
      (let ((midfill-connection-other-functions (list (lambda () 'some))))
        (progress "begin")
        (says " midfill…" "midfill: thinking, loading x")
        (progress "end")
        (says " midfill!" "midfill: error, midfill: no key")
        (setq midfill-server-problem nil)
        (says " midfill" "midfill: ready")
        (setq midfill--off t)
        (says " midfill-off" "midfill: off")))))

(ert-deftest midfill-test-uris ()
  "Names of files as URIs."
  (should (equal (midfill-sync-uri "/a b/ö#%41.py") "file:///a%20b/%C3%B6%23%2541.py"))
  (should (equal (midfill-connection-offers-p '(:inlineCompletionProvider nil)) nil))
  (should (midfill-connection-offers-p
           '(:inlineCompletionProvider nil :executeCommandProvider (:commands ["midfill.accept"]))))
  (should-not (midfill-connection-offers-p '(:executeCommandProvider (:commands ["midfill.accept"])))))

;;; emacs_tests.el ends here
