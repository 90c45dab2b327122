;;; midfill.el --- Suggestions at the cursor, by the language server midfill -*- lexical-binding: t; -*-

;; Copyright (c) 2026 the midfill developers

;; Author: the midfill developers
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.2"))
;; Keywords: convenience, languages, tools
;; URL: https://github.com/midfill/midfill
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What could come next stands in grey behind the cursor; TAB takes it.
;;
;;     (require 'midfill)
;;     (global-midfill-mode)
;;
;; The server decides, this shows: it is told of every change, waits for a
;; pause by itself and drops requests that are out of date.
;;
;; midfill has a connection to its server of its own (midfill-server.el), since
;; eglot manages one server for a buffer, and that is the one which knows the
;; language.  Both go on side by side, and whoever has neither eglot nor
;; lsp-mode needs nothing.  Where the user has made midfill the server of
;; eglot, or a client of lsp-mode, suggestions are asked for over theirs
;; (midfill-eglot.el, midfill-lsp.el), and no second server is started.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'midfill-edit)
(require 'midfill-ghost)
(require 'midfill-server)

(defcustom midfill-delay 0
  "Seconds without a key before the server is asked.
The server waits for a pause by itself, so this can be 0."
  :group 'midfill
  :type 'number)

(cl-defstruct (midfill--shown (:copier nil))
  "What is shown."
  candidates
  (index 0)
  (all nil :documentation "these are all there are: the user asked by hand")
  (told nil :documentation "candidates which the server knows to have been shown")
  (tick 0 :documentation "of the buffer when it was last known to be right")
  (connection nil :documentation "where they come from"))

(defvar midfill-mode)

(defvar-local midfill--shown nil
  "What is shown in this buffer; `midfill-completion-map' is in force then.")
(defvar-local midfill--asked-tick 0
  "Tick of the text that was last asked about: moving around asks for nothing.")
(defvar midfill--off nil "Whether the user has switched suggestions off.")
(defvar midfill--buffer nil "Where something is shown, or asked for.")
(defvar midfill--focused nil "The buffer that the server knows to be looked at.")
(defvar midfill--place nil "Where point was after the last command.")
(defvar midfill--timer nil "Runs before a request.")
(defvar midfill--cancel nil "Cancels the request that is under way.")
(defvar midfill--serial 0 "Of the newest request; answers to older ones are void.")

(defconst midfill--undo-commands '(undo undo-only undo-redo undo-tree-undo undo-tree-redo undo-fu-only-undo)
  "What takes a change back, behind which nothing is suggested.")

(defconst midfill--invoked 1 "Trigger kind of LSP 3.18; the draft before it counted from 0.")
(defconst midfill--automatic 2 "Trigger kind of LSP 3.18.")

;;; What is shown

(defun midfill--inhibited-p ()
  "Whether nothing may be shown now."
  (or midfill--off buffer-read-only (region-active-p) executing-kbd-macro (minibufferp)
      (bound-and-true-p isearch-mode)
      completion-in-region-mode ; corfu, too
      (bound-and-true-p company-candidates)
      (and (bound-and-true-p evil-local-mode)
           (not (memq (bound-and-true-p evil-state) '(insert replace emacs))))))

(defun midfill--candidate ()
  "The candidate that is shown."
  (nth (midfill--shown-index midfill--shown) (midfill--shown-candidates midfill--shown)))

(defun midfill--view ()
  "What is left of the suggestion, if it still holds."
  (and midfill--shown (midfill-edit-view (midfill--candidate))))

(defun midfill--hide ()
  "Show nothing."
  (when midfill--shown
    (midfill-ghost-clear)
    (setq midfill--shown nil)))

(defun midfill--redraw ()
  "Draw what holds, drop what does not.  Return whether it holds."
  (let ((view (midfill--view)))
    (if (not view)
        (midfill--hide)
      (let* ((shown midfill--shown) (count (length (midfill--shown-candidates shown))) (candidate (midfill--candidate)))
        (setf (midfill--shown-tick shown) (buffer-chars-modified-tick))
        (midfill-ghost-draw
         view (and (> count 1) (format "(%d/%d)" (1+ (midfill--shown-index shown)) count)))
        (unless (memq candidate (midfill--shown-told shown))
          (push candidate (midfill--shown-told shown))
          (midfill-server-shown (midfill--shown-connection shown) (midfill-candidate-item candidate)))
        t))))

(defun midfill--present (items encoding connection step)
  "Show ITEMS, with columns in ENCODING, from CONNECTION.
STEP is how many candidates to go on from the one that is shown, or nil."
  (let* ((old (midfill--view))
         (kept (and old (midfill--candidate)))
         candidates index)
    (seq-doseq (item items)
      (when-let ((candidate (midfill-edit-candidate item encoding))
                 (view (midfill-edit-view candidate)))
        (when (and old (equal (midfill-view-ghost old) (midfill-view-ghost view))
                   (= (midfill-view-stop old) (midfill-view-stop view)))
          (setq index (length candidates)))
        (setq candidates (nconc candidates (list candidate)))))
    (when (and step old (not index)) ; the others come behind the one that is shown
      (push kept candidates)
      (setq index 0))
    ;; The same still: it goes on under the name that the server knows to be shown.
    (unless (and (not step) index (null (cdr candidates)))
      (midfill--hide)
      (when candidates
        (setq midfill--shown
              (make-midfill--shown
               :candidates candidates :all (and step t) :connection connection
               :index (if step (mod (+ (or index 0) step) (length candidates)) 0)))
        (midfill--redraw)))))

;;; When to ask

(defun midfill--here ()
  "The place that an answer is for."
  (list (current-buffer) (buffer-chars-modified-tick) (point) (selected-window)))

(defun midfill--cancel-request ()
  "Want no answer any more."
  (cl-incf midfill--serial)
  (when midfill--timer
    (cancel-timer midfill--timer)
    (setq midfill--timer nil))
  (when midfill--cancel
    (funcall (prog1 midfill--cancel (setq midfill--cancel nil)))
    (force-mode-line-update)))

(defun midfill--leave ()
  "Nothing is to be shown any more, wherever it is."
  (midfill--cancel-request)
  (when (buffer-live-p midfill--buffer)
    (with-current-buffer midfill--buffer
      (midfill--hide)))
  (setq midfill--buffer nil midfill--place nil))

(defun midfill--ask (kind step)
  "Ask for suggestions at point with the trigger KIND.
STEP is as in `midfill--present'.
Return whether somebody could be asked."
  (midfill--cancel-request)
  (midfill-server-attach)
  (when-let ((connection (midfill-server-connection)))
    (pcase-let* ((`(,uri ,encoding) (midfill-server-sync connection))
                 (mine midfill--serial)
                 (here (midfill--here))
                 (end (lambda (result)
                        (when (eql mine midfill--serial)
                          (setq midfill--cancel nil)
                          (midfill--answered here result encoding connection step)
                          (force-mode-line-update t)))))
      (setq midfill--buffer (current-buffer)
            midfill--place here
            midfill--asked-tick (buffer-chars-modified-tick)
            midfill--cancel
            (midfill-server-request
             connection :textDocument/inlineCompletion
             `(:textDocument (:uri ,uri) :position ,(midfill-edit-position encoding) :context (:triggerKind ,kind))
             end
             (lambda (_) (funcall end 'failed))))
      (force-mode-line-update)
      t)))

(defun midfill--answered (here result encoding connection step)
  "Show RESULT, what CONNECTION has answered for the place HERE.
ENCODING and STEP as in `midfill--present'."
  (let ((buffer (window-buffer)))
    (when (and (not (eq result 'failed)) (eq buffer (car here)))
      (with-current-buffer buffer
        (when (and (equal here (midfill--here)) (not (midfill--inhibited-p)))
          (midfill--present (if (keywordp (car-safe result)) (plist-get result :items) result)
                            encoding connection step))))))

(defun midfill--ask-soon ()
  "Ask for suggestions at point when no key was pressed for `midfill-delay'."
  (let ((here (midfill--here)))
    (setq midfill--buffer (current-buffer)
          midfill--timer
          (run-with-timer midfill-delay nil
                          (lambda ()
                            (setq midfill--timer nil)
                            (when (eq (window-buffer) (car here))
                              (with-current-buffer (window-buffer)
                                (when (equal here (midfill--here))
                                  (midfill--ask midfill--automatic nil)))))))))

(defun midfill--update ()
  "Look at what the last command has done."
  (let ((place (midfill--here)) (shown midfill--shown))
    (cond ((or (midfill--inhibited-p) (eq this-command 'keyboard-quit)) (midfill--leave))
          ((equal place midfill--place))
          (t
           (midfill--cancel-request)
           (setq midfill--place place)
           (when shown
             (let ((candidate (midfill--candidate)))
               (unless (or (midfill--redraw)
                           (eql (midfill--shown-tick shown) (buffer-chars-modified-tick))
                           (midfill-edit-typed-p candidate))
                 (midfill-server-rejected (midfill--shown-connection shown) (midfill-candidate-item candidate)))))
           (cond ((memq this-command midfill--undo-commands)
                  (setq midfill--asked-tick (buffer-chars-modified-tick)))
                 ((not (eql midfill--asked-tick (buffer-chars-modified-tick)))
                  (midfill--ask-soon)))))))

(defun midfill--make-way (&rest _)
  "Show nothing beside a menu that has come up by itself; ask again when it has gone."
  (when (and midfill-mode (midfill--inhibited-p))
    (midfill--leave)
    (setq midfill--asked-tick 0)))

(defun midfill--focus ()
  "Let the server know which buffer is looked at."
  (setq midfill--focused (current-buffer))
  (midfill-server-attach)
  (when-let ((connection (midfill-server-connection)))
    (midfill-server-notify connection :textDocument/didFocus
                           `(:textDocument (:uri ,(car (midfill-server-sync connection)))))))

(defun midfill--post-command ()
  "Runs after each command, in whatever buffer."
  (with-current-buffer (window-buffer)
    (unless (memq midfill--buffer (list nil (current-buffer)))
      (midfill--leave))
    (when midfill-mode
      (unless (eq midfill--focused (current-buffer))
        (midfill--focus))
      (midfill--update))))

;;; Commands

(defmacro midfill--define-key-command (name arguments docstring &rest body)
  "Define a command NAME with ARGUMENTS, DOCSTRING and BODY.
It does nothing where no suggestion is shown."
  (declare (indent 2) (doc-string 3))
  `(defun ,name ,arguments ,docstring (interactive) (when (midfill--view) ,@body)))

(defun midfill--accept (kind)
  "Put the next KIND of the suggestion into the text: `word', `line' or `all'."
  (let* ((candidate (midfill--candidate))
         (view (midfill--view))
         (connection (midfill--shown-connection midfill--shown))
         (size (midfill-edit-part (midfill-view-ghost view) kind))
         (stands (+ (midfill-candidate-base candidate) (midfill-view-typed view) size)))
    (midfill-ghost-clear)
    (undo-boundary) ; a step of its own for undo
    (if (midfill-edit-insert candidate view size)
        (progn
          (midfill--hide)
          (midfill-server-accepted connection (midfill-candidate-item candidate)))
      (setf (midfill--shown-candidates midfill--shown) (list candidate)
            (midfill--shown-index midfill--shown) 0)
      (midfill--redraw)
      (midfill-server-accepted-part
       connection (midfill-candidate-item candidate)
       (midfill-edit-units (substring (midfill-candidate-whole candidate) 0 stands) "utf-16")))
    (undo-boundary)))

(midfill--define-key-command midfill-accept ()
  "Accept the suggestion."
  (midfill--accept 'all))

(midfill--define-key-command midfill-accept-word ()
  "Accept the next word of the suggestion."
  (midfill--accept 'word))

(midfill--define-key-command midfill-accept-line ()
  "Accept the next line of the suggestion."
  (midfill--accept 'line))

(defun midfill--cycle (step)
  "Show the candidate STEP behind the one that is shown."
  (let* ((shown midfill--shown) (count (length (midfill--shown-candidates shown))))
    (if (or (midfill--shown-all shown) (> count 1))
        (progn
          (setf (midfill--shown-index shown) (mod (+ (midfill--shown-index shown) step) count))
          (midfill--redraw))
      (midfill--ask midfill--invoked step))))

(midfill--define-key-command midfill-next ()
  "Show the next suggestion for this place."
  (midfill--cycle 1))

(midfill--define-key-command midfill-previous ()
  "Show the previous suggestion for this place."
  (midfill--cycle -1))

(midfill--define-key-command midfill-dismiss ()
  "Show the suggestion no more."
  (let ((shown midfill--shown) (item (midfill-candidate-item (midfill--candidate))))
    (midfill--leave)
    (midfill-server-rejected (midfill--shown-connection shown) item)))

(defun midfill-complete ()
  "Ask for suggestions at point now, without waiting for a pause."
  (interactive "*")
  (unless midfill-mode
    (midfill-mode))
  (unless (midfill--ask midfill--invoked 0)
    (pcase-let ((`(,status . ,detail) (midfill-status)))
      (message "midfill: %s%s" status (if detail (concat ", " detail) "")))))

(defun midfill-toggle ()
  "Switch suggestions off, or on again."
  (interactive)
  (setq midfill--off (not midfill--off))
  (midfill--leave)
  (midfill-server-execute (midfill-server-connection) "midfill.toggle" (list (if midfill--off :json-false t)))
  (force-mode-line-update t)
  (message "midfill: %s" (if midfill--off "off" "on")))

(defun midfill-restart ()
  "Start the server anew, with the settings as they are now."
  (interactive)
  (midfill--leave)
  (setq midfill--focused nil)
  (midfill-server-restart (midfill-server-connection)))

(defun midfill-stop ()
  "End the server until \\[midfill-restart]."
  (interactive)
  (midfill--leave)
  (midfill-server-stop nil))

(defun midfill-log ()
  "Show what the server has logged."
  (interactive)
  (pop-to-buffer (get-buffer-create midfill-server-log)))

(defun midfill--tell (command arguments format)
  "Show what COMMAND with ARGUMENTS gives, made a text by FORMAT."
  (midfill-server-execute
   (or (midfill-server-connection) (user-error "The server of midfill is not running"))
   command arguments
   (lambda (result)
     (let ((text (funcall format result)))
       (with-help-window "*midfill*"
         (princ text))))
   (lambda (failed)
     (message "midfill: %s" (plist-get failed :message)))))

(defun midfill--json (value)
  "VALUE as JSON to be read."
  (let ((json-encoding-pretty-print t) (json-encoding-default-indentation "  "))
    (json-encode value)))

(defun midfill-show-status ()
  "Show what the server counts, and what it uses."
  (interactive)
  (midfill--tell "midfill.status" nil #'midfill--json))

(defun midfill-explain ()
  "Show what became of the last request for this buffer, and what was sent."
  (interactive)
  (midfill--tell
   "midfill.explain" (list (car (midfill-server-sync (or (midfill-server-connection) (user-error "Not running")))))
   (lambda (records)
     (if (seq-empty-p records)
         "Nothing was asked for this buffer yet.\n"
       (mapconcat (lambda (record)
                    (let ((text (plist-get record :explained)))
                      (concat (if (stringp text) (concat text "\n\n") "")
                              (midfill--json (cl-loop for (key value) on record by #'cddr
                                                      unless (eq key :explained) nconc (list key value))))))
                  records "\n\n")))))

;;; The mode

(defun midfill-status ()
  "What midfill is doing in this buffer, and a sentence about it or nil.
The first is ready, thinking, off, error or stopped."
  (cond (midfill--off '(off))
        ((not (midfill-server-connection))
         (cond (midfill-server-problem (cons 'error midfill-server-problem))
               (midfill-server-own '(thinking . "starting"))
               (t '(stopped))))
        (midfill-server-busy (cons 'thinking midfill-server-busy))
        ((or midfill--cancel midfill--timer) '(thinking))
        (midfill-server-problem (cons 'error midfill-server-problem))
        (t '(ready))))

(defun midfill-mode-line ()
  "What the mode line shows."
  (pcase-let ((`(,status . ,detail) (midfill-status)))
    (propertize (concat " midfill" (pcase status ('thinking "…") ('off "-off") ('error "!") ('stopped "-")))
                'face (and (eq status 'error) 'warning)
                'help-echo (format "midfill: %s%s" status (if detail (concat ", " detail) "")))))

(defvar midfill-completion-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'midfill-accept)
    (define-key map (kbd "<tab>") #'midfill-accept)
    (define-key map (kbd "M-f") #'midfill-accept-word)
    (define-key map (kbd "M-e") #'midfill-accept-line)
    (define-key map (kbd "M-n") #'midfill-next)
    (define-key map (kbd "M-p") #'midfill-previous)
    (define-key map [remap keyboard-quit] #'midfill-dismiss)
    map)
  "Keys that act while a suggestion is shown, and only then.")

(defvar midfill-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c \\") #'midfill-complete)
    map)
  "Keys of `midfill-mode'.")

(defvar midfill--key-maps (list (cons 'midfill--shown midfill-completion-map))
  "For `emulation-mode-map-alists': before the keys of other minor modes.")

;;;###autoload
(define-minor-mode midfill-mode
  "Show suggestions at the cursor.
\\<midfill-completion-map>While one is shown these keys act:

\\{midfill-completion-map}"
  :lighter (:eval (midfill-mode-line))
  :keymap midfill-mode-map
  (let ((change (if midfill-mode #'add-hook #'remove-hook)))
    (dolist (hook '(kill-buffer-hook change-major-mode-hook))
      (funcall change hook #'midfill--off-here nil t))
    (funcall change 'after-set-visited-file-name-hook #'midfill--renamed nil t))
  (if (not midfill-mode)
      (midfill--off-here)
    (add-to-list 'emulation-mode-map-alists 'midfill--key-maps)
    (add-hook 'post-command-hook #'midfill--post-command)
    (add-hook 'completion-in-region-mode-hook #'midfill--make-way)
    (add-hook 'company-completion-started-hook #'midfill--make-way)
    (setq midfill--asked-tick (buffer-chars-modified-tick) midfill--focused nil)))

(defun midfill--off-here ()
  "Leave this buffer alone."
  (when (eq midfill--buffer (current-buffer))
    (midfill--leave))
  (midfill-sync-close))

(defun midfill--renamed ()
  "Tell the server the new name of this buffer."
  (midfill--off-here)
  (setq midfill--focused nil))

(defun midfill--turn-on ()
  "Turn `midfill-mode' on if this buffer is one of a file."
  (when (midfill-server-wanted-p)
    (midfill-mode)))

;;;###autoload
(define-globalized-minor-mode global-midfill-mode midfill-mode midfill--turn-on
  :group 'midfill
  :predicate '(prog-mode conf-mode))

(defun midfill--buffers ()
  "The buffers that are shown and want suggestions."
  (cl-remove-if-not (lambda (buffer) (buffer-local-value 'midfill-mode buffer))
                    (delete-dups (mapcar #'window-buffer (window-list-1 nil 'no-minibuffer t)))))

(setq midfill-server-buffers-function #'midfill--buffers)

;; For those who have only the folder in their `load-path'.
(autoload 'midfill-eglot-setup "midfill-eglot")
(autoload 'midfill-lsp-setup "midfill-lsp")

(provide 'midfill)
;;; midfill.el ends here
